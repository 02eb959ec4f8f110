import assert from "node:assert/strict";
import { test } from "node:test";
import * as model from "./model.js";
import { merged, tallyOf, twoGroups } from "./small.js";

/** @typedef {import("../../src/isocost/page/web/model/costs.js").Cost} Cost */
/** @typedef {import("../../src/isocost/page/web/model/rules.js").Rule} Rule */

/** @param {number | undefined | null} found
 * @param {number} wanted */
function close(found, wanted) {
  assert.ok(Math.abs((found ?? NaN) - wanted) < 1e-12, `${found} is not ${wanted}`);
}

/** @param {Rule | null} found
 * @returns {Rule} */
function rule(found) {
  assert.ok(found);
  return found;
}

/** @type {Cost} */
const fnr = { kind: "fnr" };

test("measures of four people each", () => {
  /** @type {Cost} */
  const cost = { kind: "weighted", fp: 1, fn: 3 };
  const [a, b] = model.measures(twoGroups(), { threshold: 0.5, cost });
  assert.ok(a && b);
  close(a.base_rate, 0.5);
  close(a.mean_score, 0.5);
  close(a.generalized_fpr, 0.25);
  close(a.generalized_fnr, 0.25);
  close(a.brier, (0.04 + 0.09 + 0.09 + 0.04) / 4);
  close(a.calibration_gap, 0.25);
  close(a.cost, 0.5 * 0.25 + 1.5 * 0.25);
  close(a.trivial_cost, 1);
  assert.deepEqual([a.fpr, a.fnr, a.accuracy, a.selection_rate], [0, 0, 1, 0.5]);
  close(b.generalized_fpr, 0.4);
  const all = model.overall(twoGroups(), { threshold: 0.6, cost: fnr });
  close(all.generalized_fnr, 0.325);
  assert.deepEqual([all.n, all.fnr, all.fpr], [8, 0.25, 0]);
});

test("a threshold inside a bin is not known, neither is one inside merged bins", () => {
  const [a] = model.measures(twoGroups(), { threshold: 0.25, cost: fnr });
  assert.ok(Number.isNaN(a?.fpr));
  const [whole, hidden] = model.measures(merged(), { threshold: 0.5, cost: fnr });
  assert.equal(whole?.fpr, 0);
  assert.ok(Number.isNaN(hidden?.fpr) && Number.isNaN(hidden?.accuracy));
  close(hidden?.generalized_fnr, 0.4);
  assert.equal(model.decides(merged(), 0.5), false);
  assert.equal(model.decides(merged(), 0.5, 0), true);
  assert.equal(model.decides(merged(), 0.3), true);
});

test("withholding: alpha = (0.4 - 0.25) / (0.5 - 0.25)", () => {
  const tally = twoGroups();
  const found = model.feasibility(tally, fnr);
  assert.deepEqual([found.feasible, found.target, found.smallest_tolerance], [true, 1, 0]);
  close(found.alpha[0], 0.6);
  const made = rule(model.withhold(tally, { cost: fnr }));
  assert.equal(made.rows.length, 1);
  close(made.rows[0]?.probability, 0.6);
  const after = model.expected(made, tally);
  close(model.measures(after, { threshold: 0.5, cost: fnr })[0]?.cost, 0.4);
  const { groups } = model.changes(tally, made, 0.5);
  close(groups[0]?.changed, 0.6);
  // Two of four are below 1/2, and those who get 1/2 are above.
  close(groups[0]?.decisions, 0.3);
  assert.equal(groups[0]?.by_coin, 1);
  assert.equal(groups[1]?.changed, 0);
});

test("what is not feasible has no rule, and it is known what it would take", () => {
  const tally = tallyOf(
    [
      ["a", 0, 0.8],
      ["a", 1, 0.8],
      ["b", 0, 0.1],
      ["b", 0, 0.1],
      ["b", 0, 0.1],
      ["b", 1, 0.9],
    ],
    ["a", "b"],
  );
  // Group a costs 0.8, and group b at most its base rate 0.25.
  assert.equal(model.withhold(tally, { cost: { kind: "fpr" }, tolerance: 0.1 }), null);
  close(model.feasibility(tally, { kind: "fpr" }, 0.1).smallest_tolerance, 0.55);
  const closest = rule(model.withhold(tally, { cost: { kind: "fpr" }, tolerance: 0.55 }));
  close(closest.rows[0]?.probability, 1);
});

test("turned scores: 0.25 + 0.3 (0.75 - 0.25) = 0.4", () => {
  const after = model.measures(model.expected(flips("a"), twoGroups()), { threshold: 0.5, cost: fnr });
  for (const group of after) {
    close(group.generalized_fpr, 0.4);
    close(group.generalized_fnr, 0.4);
  }
  const { groups } = model.changes(twoGroups(), flips("a"), 0.5);
  close(groups[0]?.decisions, 0.3);
});

/** A rule that turns three in ten scores of a group, on either side of 1/2.
 * @param {string} group
 * @returns {Rule} */
function flips(group) {
  const row = { group, action: /** @type {const} */ ("mirror"), value: null, probability: 0.3 };
  const nothing = rule(model.withhold(twoGroups(), { cost: fnr, tolerance: 1 }));
  return { ...nothing, rows: [{ ...row, lo: 0.5, hi: 1 }, { ...row, lo: 0, hi: 0.5 }] };
}

test("level curves: on them every calibrated score costs the target", () => {
  const [fp, fn, target] = [1, 3, 0.6];
  const points = model.levelCurve(fp + fn, target);
  assert.equal(points.length, 201);
  for (const { x, y } of points) {
    // x and y tell the base rate: x (1 - mu) = y mu.
    const mu = x / (x + y);
    assert.ok(x + y <= 1 + 1e-12);
    assert.ok(Math.abs(fp * (1 - mu) * x + fn * mu * y - target) < 1e-9, `${x} ${y}`);
  }
  // (fp + fn) mu (1 - mu) is at most a quarter of fp + fn.
  assert.deepEqual(model.levelCurve(4, 1.01), []);
  assert.deepEqual(model.levelCurve(4, 0), []);
});

test("merged bins: sums are exact, sides are refused", () => {
  const made = rule(model.withhold(merged(), { cost: fnr }));
  close(made.rows[0]?.probability, 0.6);
  assert.throws(() => model.expected(flips("b"), merged()), /merged/);
  assert.throws(() => model.changes(merged(), flips("b"), 0.5), /merged/);
  assert.ok(Number.isNaN(model.changes(merged(), made, 0.5).overall.decisions));
  close(model.changes(merged(), made, 0.3).overall.decisions, 0.5 * 0.6 * 0.25);
});

test("flipped scores of merged bins: which side of a threshold they come to may be open", () => {
  // From 0.3 to 0.6 becomes 0.4 to 0.7: across 0.6, but not across 0.3.
  const tally = twoGroups();
  const cells = tally.cells.map((cell) => (cell.group === 1 ? { ...cell, bin: 5, first: 3, end: 6 } : cell));
  const whole = { ...flips("b"), rows: flips("b").rows.slice(0, 1).map((row) => ({ ...row, lo: 0, hi: 1 })) };
  const told = [0.6, 0.3].map((threshold) => model.changes({ ...tally, cells }, whole, threshold));
  assert.deepEqual(told.map(({ overall }) => overall.decisions), [Number.NaN, 0]);
  close(told[0]?.groups[1]?.by_coin, 1);
});

test("a rule for other groups is refused", () => {
  const made = rule(model.withhold(twoGroups(), { cost: fnr }));
  const other = { ...twoGroups(), groups: ["a", "c"], names: ["a", "c"] };
  assert.throws(() => model.expected(made, other), /does not know c/);
});

test("a rule names the groups that the page does not hold, and has no rows for them", () => {
  const few = { group: { exact: "1.0" }, n: 3, base_rate: 1 / 3 };
  const whole = { ...twoGroups(), roster: [few, 0, 1], rule_notes: ["Left as they are: few."] };
  const made = rule(model.withhold(whole, { cost: fnr }));
  assert.deepEqual([made.groups, made.fitted], [[few.group, "a", "b"], ["a", "b"]]);
  assert.deepEqual([made.notes, made.made_from["n"]], [["Left as they are: few."], 11]);
  assert.deepEqual(model.subset(whole, [1]).roster, [few, 0]);
  // Where counts are hidden, the rule has none either.
  const hidden = rule(model.withhold({ ...whole, roster: [{ group: few.group }, 0, 1] }, { cost: fnr }));
  assert.deepEqual([hidden.groups.length, hidden.made_from["n"]], [3, 8]);
});
