import assert from "node:assert/strict";
import { test } from "node:test";
import { evidenceOf } from "../../src/isocost/page/web/app/tables.js";

test("moving from one cost or threshold to another keeps the intervals", () => {
  const own = {
    thresholds: [0.3, 0.5], intervals: [{ brier: [0, 1] }, { brier: [0, 1] }], given: [{ auc: 0.7 }, { auc: 0.7 }],
    at: [{ fpr: [[0.1, 0.2], [0.3, 0.4]], impact_ratio: [[0.5, 0.9, 0.7], [null, null, null]] }, { fpr: [null, [0.1, 0.3]] }],
    evidence: { fpr: { intervals: [{ cost: [0.2, 0.3] }, {}] }, fnr: { intervals: [{ cost: [0.4, 0.5] }, {}] } },
  };
  const state = { cost: { kind: "fpr" }, threshold: 0.3, off: [] };
  const before = evidenceOf(own, state);
  assert.deepEqual(before.intervals[0], { brier: [0, 1], cost: [0.2, 0.3], fpr: [0.1, 0.2], impact_ratio: [0.5, 0.9, 0.7] });
  assert.deepEqual(before.given, [{ auc: 0.7, impact_ratio: 0.7 }, { auc: 0.7, impact_ratio: null }]);
  const after = evidenceOf(own, { ...state, cost: { kind: "fnr" }, threshold: 0.5 });
  assert.deepEqual(after.intervals[0], { brier: [0, 1], cost: [0.4, 0.5] });
  assert.equal(after.ofCost, own.evidence.fnr);
  const some = evidenceOf(own, { ...state, off: [0] });
  assert.deepEqual([some.ofCost, some.intervals[1], some.given[0]], [null, {}, {}]);
  assert.deepEqual(some.intervals[0], before.intervals[0]);
});
