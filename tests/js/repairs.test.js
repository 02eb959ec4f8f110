import assert from "node:assert/strict";
import { test } from "node:test";
import { givenRule, repairsOf } from "../../src/isocost/page/web/app/repairs.js";
import { twoGroups, words } from "./small.js";

/** What Python gives: odds at two thresholds, coarsen for one cost and two tolerances.
 * @returns {any} */
function givenPage() {
  const rule = { method: "m", cost: null, settings: {}, coin: { salt: "s" }, rows: [], notes: [] };
  const coarsen = { method: "coarsen", threshold: 0.5, cost: "fpr", rule };
  const costs = { fpr: { label: "False alarms" } };
  return {
    tally: { groups: ["a", "b"] },
    words: { ...words(), costs, methods: { coarsen: { label: "Coarsen" }, equalize_odds: { label: "Equalize odds" } } },
    given: [
      { method: "equalize_odds", threshold: 0.5, cost: null, tolerance: null, rule },
      { method: "equalize_odds", threshold: 0.3, cost: null, tolerance: null, rule: null, why: "Not possible here: it is hard." },
      { ...coarsen, tolerance: 0, rule: null, why: "Not possible here: it would take more." },
      { ...coarsen, tolerance: 0.1 },
    ],
  };
}

test("a rule that the caller supplied has the goal of its method", () => {
  const rule = { cost: null, settings: {}, coin: { salt: "s" }, rows: [], notes: [] };
  const methods = { coarsen: { name: "coarsen", goal: "cost" }, equalize_odds: { name: "odds", goal: "rates" } };
  const page = { ...givenPage(), rules: { a: { ...rule, method: "coarsen" }, b: { ...rule, method: "odds" }, c: { ...rule, method: "mine" } } };
  page.words.methods = methods;
  const state = { cost: { kind: "fpr" }, tolerance: 0, threshold: 0.5 };
  const goals = repairsOf(page, twoGroups(), [0, 1], state).map((one) => [one.key, one.goal]);
  assert.deepEqual(goals, [["rule:a", "cost"], ["rule:b", "rates"], ["rule:c", undefined], ["coarsen", "cost"], ["equalize_odds", "rates"]]);
});

test("a given rule is shown for its own settings, or says what it was made for", () => {
  /** @param {string} method
   * @param {any} change
   * @param {number[]} [shown]
   * @returns {any} */
  const offer = (method, change, shown = [0, 1]) =>
    givenRule(givenPage(), twoGroups(), shown, method, { cost: { kind: "fpr" }, tolerance: 0, threshold: 0.5, ...change });
  const exact = offer("equalize_odds", { cost: { kind: "fnr" }, tolerance: 0.07 });
  assert.deepEqual([exact.rule.method, exact.at, exact.note], ["m", undefined, undefined]);
  const near = offer("equalize_odds", { threshold: 0.45 });
  assert.deepEqual([near.rule.method, near.at, near.label], ["m", 0.5, "Equalize odds at 0.5"]);
  assert.match(near.note, /this is for 0\.5, the nearest to yours/);
  const none = offer("equalize_odds", { threshold: 0.2 });
  assert.deepEqual([none.rule, none.why, none.at], [null, "Not possible here: it is hard.", 0.3]);
  assert.equal(offer("coarsen", { tolerance: 0.1 }).rule.method, "m");
  assert.equal(offer("coarsen", {}).why, "Not possible here: it would take more.");
  const elsewhere = [offer("coarsen", { tolerance: 0.05 }), offer("coarsen", { cost: { kind: "fnr" } })];
  for (const { rule, why, isElsewhere } of elsewhere) {
    assert.deepEqual([rule, isElsewhere], [null, true]);
    assert.match(why, /only for false alarms, with a tolerance of 0 or 0\.1\. For your settings, choose it/);
  }
  const some = offer("equalize_odds", {}, [0]);
  assert.deepEqual([some.rule, some.isElsewhere], [null, true]);
  assert.match(some.why, /for all groups only/);
  assert.match(offer("reconcile", {}).why, /too few people/);
});
