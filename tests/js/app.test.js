import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { feasibility } from "./model.js";
import { counted, fill, fixed3, listed, percent1, plainText } from "../../src/isocost/reports/page/app/say.js";
import { fromHash, ownState, thresholdsOf, toHash, weightsOf } from "../../src/isocost/reports/page/app/state.js";
import { blockedOf, costsFigure, isMany, reliabilityFigure, short, valuesFigure, valuesFigures } from "../../src/isocost/reports/page/app/figures.js";
import { planeFigure } from "../../src/isocost/reports/page/app/plane.js";
import { sentencesOf, settingsOf, staleText } from "../../src/isocost/reports/page/app/verdicts.js";
import { givenRule, repairsOf, spreadOf } from "../../src/isocost/reports/page/app/repairs.js";
import { alternativesOf } from "../../src/isocost/reports/page/app/alternatives.js";
import { holds } from "../../src/isocost/reports/page/app/tables.js";
import { measures, subset } from "./model.js";
import { tallyOf, twoGroups } from "./small.js";

/** @type {any} the browser's name for what node has as well */
(globalThis).window = globalThis;

/** The page's words, read from Python's file: one "name": "text" after the other.
 * @returns {Record<string, any>} */
function words() {
  /** @type {Record<string, any>} */
  const texts = {};
  for (const [file, table] of [["verdict/sentences.py", "SENTENCES = {"], ["reports/facts.py", "WORDS = {"]]) {
    const source = readFileSync(`src/isocost/${file}`, "utf-8");
    const start = source.indexOf(String(table));
    const entries = source.slice(start, source.indexOf("\n}", start));
    for (const [, name, text] of entries.matchAll(/^ {4}"(\w+)": (\((?:\s*"[^"]*")+\s*\)|"[^"]*")/gm)) {
      texts[String(name)] = [...String(text).matchAll(/"([^"]*)"/g)].map((part) => part[1]).join("");
    }
  }
  return texts;
}

const JUDGEMENT = JSON.parse(readFileSync("tests/js/judgement.json", "utf-8"));

/** What Python computed for the audit's own settings.
 * @param {any} f
 * @param {boolean} isEstablished
 * @returns {any} */
function ownOf(f, isEstablished = true) {
  const [excess_low, excess_high] = f.feasible ? [-0.2, -0.1] : [0.1, 0.3];
  const findings = { groups: f.costs.length, difference_low: isEstablished ? 0.1 : 0, excess_low, excess_high };
  return {
    confidence: 0.95, tolerance: 0, difference: [0.1, 0.2], disparity: [0.1, 0.2], more_data: "More data.", plan: "isocost plan data.csv",
    verdict: { findings, highest: [f.target] }, floors: f.costs.map(() => 0), intervals: f.costs.map(() => ({})),
    min_group: 30, min_label: 5,
  };
}

/** What main.js computes, as far as sentences and pictures need it.
 * @param {any} tally
 * @param {any} [change]
 * @returns {any} */
function found(tally, { cost = { kind: "fpr" }, tolerance = 0, ...more } = {}) {
  const f = feasibility(tally, cost, tolerance);
  return {
    f, m: measures(tally, { cost, threshold: 0.5 }), n: 8,
    spoken: tally.names, called: tally.names, shown: tally.groups.map((/** @type {any} */ _, /** @type {number} */ i) => i),
    words: words(), judgement: JUDGEMENT, own: ownOf(f), sameCost: true, sameGroups: true, sameThreshold: true, tally, chosen: null, ...more,
  };
}

const SIZE = { width: 600, height: 400 };
const LOOK = { colors: ["#1", "#2", "#3"], shapes: ["circle", "square", "diamond"], ink: "i", muted: "m", line: "l", alert: "red" };

test("sentences are filled with texts and names, and never with markup", () => {
  const parts = fill("{a} and {b}.", { a: { name: "<b>" }, b: ["x ", { name: "{a}" }] });
  assert.deepEqual(parts, [{ name: "<b>" }, " and ", "x ", { name: "{a}" }, "."]);
  assert.equal(plainText(parts), "<b> and x {a}.");
  assert.deepEqual(fill("no {such} place"), ["no ", "", " place"]);
  assert.equal(plainText(listed([["a"], ["b"], ["c"]])), "a, b and c");
  assert.deepEqual(listed([]), []);
});

test("numbers for people", () => {
  assert.deepEqual([fixed3(-0.0504), fixed3(Number.NaN), fixed3(Infinity)], ["−0.050", "–", "–"]);
  assert.deepEqual([percent1(0.1234), percent1(Number.NaN)], ["12.3\u00a0%", "–"]);
  assert.equal(counted(1234567.25), "1,234,567.3");
  assert.equal(short("🦊".repeat(30)), `${"🦊".repeat(25)}…`);
  assert.equal(spreadOf([{ x: 1 }, { x: -2 }], "x"), 3);
});

test("the weights of the audit stand among those on offer, in order", () => {
  assert.equal(weightsOf({ cost: { kind: "fpr" } }).length, 9);
  const own = weightsOf({ cost: { kind: "weighted", fp: 2, fn: 5 } });
  assert.equal(own.length, 10);
  const shares = own.map(([fp, fn]) => fn / (fp + fn));
  assert.deepEqual(shares, [...shares].sort((a, b) => a - b));
  // 2 : 2 is 1 : 1, and takes its place.
  assert.deepEqual(weightsOf({ cost: { kind: "weighted", fp: 2, fn: 2 } })[4], [2, 2]);
});

test("settings survive the address, and nonsense does not", () => {
  const tally = twoGroups();
  const own = ownState({ cost: { kind: "fpr" }, tolerance: 0, threshold: 0.5 }, tally);
  const known = { thresholds: thresholdsOf(tally, 0.5), methods: ["none", "withhold"], groups: 4 };
  assert.equal(toHash(own, own), "");
  const cost = { kind: /** @type {const} */ ("weighted"), fp: 1, fn: 2.5 };
  const state = { cost, tolerance: 0.03, threshold: 0.3, method: "none", off: [1, 3] };
  assert.deepEqual(fromHash(`#${toHash(state, own)}`, own, known), state);
  for (const bad of ["#cost=weighted:0,0", "#cost=weighted:1,1e999", "#tolerance=-1", "#tolerance=Infinity",
    "#threshold=0.33", "#method=alert", "#off=0.1.2", "#off=9", "#off=-1", "#%%%"]) {
    assert.deepEqual(fromHash(bad, own, known), own, bad);
  }
});

test("a feasible repair is told, with the tolerance if there is one", () => {
  const exact = sentencesOf(found(twoGroups()));
  assert.equal(plainText(exact.verdict), "Errors are more costly for b than for a. The costs can be made equal, but only by making scores worse for a.");
  assert.equal(exact.why, "Why it can be equal");
  const close = sentencesOf(found(twoGroups(), { tolerance: 0.05 }));
  assert.match(plainText(close.verdict), /can be brought within 0\.05 of each other, but only by making scores worse for a\.$/);
  assert.equal(close.why, "Why it can come that close");
  assert.match(plainText(close.geometry[2] ?? []), /^To cost as much as b, to within 0\.05, a must move/);
  const done = sentencesOf(found(twoGroups(), { tolerance: 0.2 }));
  assert.equal(plainText(done.verdict), "Errors are equally costly for every group, to within 0.2.");
  assert.equal(done.why, "Where the groups are");
});

/** b costs 0.8 false alarms; a's trivial cost is 0.25, c's 0.5: a is further away. */
function outOfReach() {
  return tallyOf([
    ["a", 0, 0.1], ["a", 0, 0.1], ["a", 0, 0.1], ["a", 1, 0.7],
    ["b", 0, 0.8], ["b", 1, 0.9], ["b", 1, 0.9], ["b", 1, 0.9], ["b", 1, 0.9], ["b", 1, 0.9],
    ["c", 0, 0.2], ["c", 1, 0.8],
  ], ["a", "b", "c"]);
}

test("the group that is furthest from its place is the one that is told and marked", () => {
  const all = found(outOfReach());
  assert.deepEqual(all.f.unreachable, [0, 2]);
  assert.equal(blockedOf(all.f), 0);
  const told = sentencesOf(all);
  assert.match(plainText(told.verdict), /^Errors are most costly for b, and no calibrated repair/);
  assert.match(plainText(told.geometry[2] ?? []), /b, a would have to move past the end of its line/);
  const bars = costsFigure(all, LOOK, 600).data;
  const written = bars["texts"]?.map((one) => one.text) ?? [];
  assert.deepEqual(written.filter((text) => /reach|match/.test(text)), ["to match: 0.800", "0.550 out of reach", "0.300 out of reach"]);
  const two = found(subset(outOfReach(), [0, 1]));
  const { data: marks, signals } = planeFigure(two, LOOK, { width: 600, height: 400 });
  // Both rates would be above 1: it is pointed to, and Vega is given nothing outside the picture.
  assert.deepEqual(marks["beyond"]?.map((one) => [one.color, one.y2]), [["red", signals["high"]]]);
  assert.deepEqual(marks["needed"], []);
  const near = planeFigure(found(twoGroups(), { cost: { kind: "weighted", fp: 1, fn: 1 } }), LOOK, { width: 600, height: 400 });
  assert.equal(near.data["needed"]?.length, 1);
});

test("the costs show where a repair takes them, and a goal only if it has one", () => {
  const after = [{ cost: 0.9, generalized_fpr: 0.9, generalized_fnr: 0.1 }, { cost: 0.3, generalized_fpr: 0.3, generalized_fnr: 0.2 }];
  const plain = found(twoGroups());
  assert.deepEqual(costsFigure(plain, LOOK, 600).data["after"], []);
  const both = { ...plain, chosen: { key: "withhold", goal: "cost", label: "Withhold", after } };
  const still = { ...plain, chosen: { key: "withhold", goal: "cost", after: [{ cost: 0.2501 }, { cost: 0.4 }] } };
  assert.deepEqual(costsFigure(still, LOOK, 600).data["after"], []);
  const { data, signals } = costsFigure(both, LOOK, 600);
  assert.deepEqual(data["after"]?.map((one) => [one.x, one.shape]), [[0.9, "circle"], [0.3, "square"]]);
  assert.ok((signals["right"] ?? 0) > 0.9);
  assert.equal(data["target"]?.length, 1);
  assert.match(alternativesOf(both).plane, /After the repair “Withhold”: a: false alarms 0\.900, misses 0\.100; b: /);
  assert.match(alternativesOf(both).costs, /To match: 0\.400\. After the repair “Withhold”: a: cost 0\.900; b: cost 0\.300\.$/);
  for (const chosen of [{ key: "equalize_odds", goal: "rates", after }, { key: "rule:y", rule: { method: "mine" } }]) {
    const bars = costsFigure({ ...plain, chosen }, LOOK, 600).data;
    assert.deepEqual(bars["target"], []);
    assert.ok(!bars["texts"]?.some((one) => /reach|match/.test(one.text)));
    assert.doesNotMatch(alternativesOf({ ...plain, chosen }).costs, /To match/);
  }
});

test("predictive values stand beside what scores predict", () => {
  const plain = found(twoGroups());
  const m = [{ false_omission_rate: 0.01, ppv: 0.7, base_rate: 0.02 }, { false_omission_rate: 0.02, ppv: Number.NaN, base_rate: 0.02 }];
  const sides = [{ passed: 0.012, selected: 0.6 }, { passed: 0.02, selected: Number.NaN }];
  const spans = { false_omission_rate: [0.005, 0.015], ppv: [0.6, 0.8] };
  const state = { ...plain.state, threshold: 0.5 };
  const told = { ...plain, state, m, sides, own: { intervals: [spans, {}] }, sameThreshold: true };
  const { data, signals } = valuesFigure(told, LOOK, SIZE);
  assert.deepEqual(data["groups"]?.map(({ x, y }) => [x, y]), [[0.01, 0.7]]);
  assert.deepEqual(data["predicted"]?.map(({ x, y }) => [x, y]), [[0.012, 0.6]]);
  assert.deepEqual(data["whiskers"]?.map(({ x, x2, y, y2 }) => [x, x2, y, y2]), [[0.005, 0.015, 0.7, 0.7], [0.01, 0.01, 0.6, 0.8]]);
  assert.ok((signals["right"] ?? 1) < 0.1, "the corner at 0.5 is too far away across");
  assert.ok((signals["low"] ?? 1) < 0.02 && (signals["high"] ?? 0) > 0.8);
  assert.equal(valuesFigure({ ...told, sameThreshold: false }, LOOK, SIZE).data["whiskers"]?.length, 0);
  const near = valuesFigure({ ...told, m: [{ ...m[0], false_omission_rate: 0.3, base_rate: 0.45 }, m[1]] }, LOOK, SIZE);
  assert.ok((near.signals["right"] ?? 0) > 0.5);
  assert.deepEqual(data["texts"]?.map((one) => one.text), ["a"]);
  const many = { ...told, m: Array(9).fill(m[0]), sides: Array(9).fill(sides[0]), spoken: [..."abcdefghi"], shown: Array(9).fill(0) };
  assert.ok(isMany(many) && !isMany(told));
  const [selected, passed] = valuesFigures(many, LOOK, 600);
  assert.deepEqual(selected?.data["points"]?.map((one) => one.name), [..."abcdefghi"]);
  assert.deepEqual(passed?.data["after"]?.map((one) => one.x), Array(9).fill(0.012));
  assert.deepEqual([selected?.data["texts"]?.length, passed?.data["texts"]?.length], [9, 0], "names, once; the threshold is too far away");
});

test("how many people there are is drawn below the rates", () => {
  const bins = [{ lo: 0, hi: 0.1, n: 10, mean_score: 0.05, mean_label: 0.1 }, { lo: 0.1, hi: 0.2, n: 30, mean_score: 0.15, mean_label: 0.1 }];
  const { bars = [] } = reliabilityFigure(bins, "#1", LOOK);
  assert.ok(bars.every((bar) => bar.y < 0 && bar.y2 === -0.2));
  assert.ok(Math.abs((bars[1].y + 0.2) / (bars[0].y + 0.2) - 3) < 1e-9);
});

test("a cross is drawn unless the arrow ends there", () => {
  const plain = found(twoGroups());
  const size = { width: 600, height: 400 };
  assert.equal(planeFigure(plain, LOOK, size).data["needed"]?.length, 1);
  const rates = { generalized_fpr: 0.4, generalized_fnr: 0.4 };
  const there = { ...plain, chosen: { after: [rates, plain.m[1]] } };
  assert.equal(planeFigure(there, LOOK, size).data["needed"]?.length, 0);
  const elsewhere = { ...plain, chosen: { after: [{ ...rates, generalized_fpr: 0.3 }, plain.m[1]] } };
  assert.equal(planeFigure(elsewhere, LOOK, size).data["needed"]?.length, 1);
  assert.equal(planeFigure(elsewhere, LOOK, size).data["arrows"]?.length, 1);
});

test("what is not established is not claimed", () => {
  const unsure = (/** @type {any} */ tally) => {
    const all = found(tally);
    return sentencesOf({ ...all, own: ownOf(all.f, false) });
  };
  const two = unsure(twoGroups());
  assert.equal(plainText(two.verdict), "It is not established that errors are more costly for one group than for the other.");
  const many = unsure(outOfReach());
  assert.equal(plainText(many.verdict), "It is not established that errors are more costly for any group than for another.");
  assert.match(plainText(many.ledes[0] ?? []), /anything from 0\.100 to 0\.200\. More data\./);
  assert.equal(many.why, "As measured, it cannot be equal");
  assert.deepEqual(many.keys.map((key) => key.alert ?? false), [false, false, false, false]);
  assert.deepEqual([two.keys[1].value, two.keys[1].label], ["none", "of the repairs is advised"]);
  assert.equal(two.why, "Where the groups are");
  assert.equal(two.noneAdvised, "None of them is advised here: the difference may be chance.");
  assert.equal(sentencesOf(found(twoGroups())).noneAdvised, "");
  assert.equal(sentencesOf(found(outOfReach())).keys[1].alert, true);
});

test("a group that is off comes before what errors cost", () => {
  const all = found(twoGroups());
  const off = sentencesOf({ ...all, own: { ...all.own, floors: [0.05, 0] } });
  assert.equal(plainText(off.verdict), "The scores of a do not mean what they say.");
  assert.match(plainText(off.ledes[0] ?? []), /^The calibration gap of a is 0\.\d+, beyond chance at least 0\.050;/);
  assert.deepEqual(off.keys.map((key) => key.alert ?? false), [false, false, true, false]);
});

test("two groups are needed, and several may be the costliest", () => {
  const all = found(outOfReach());
  const few = { ...all.own, verdict: { ...all.own.verdict, findings: { ...all.own.verdict.findings, groups: 1 } } };
  assert.equal(plainText(sentencesOf({ ...all, own: few }).verdict), "There is too little data to compare the groups.");
  const own = { ...all.own, verdict: { ...all.own.verdict, highest: [0, 1] } };
  assert.match(plainText(sentencesOf({ ...all, own }).verdict), /^Errors are most costly for a or b, and no calibrated repair/);
});

test("without intervals it is said to be as measured", () => {
  const wanted = "As measured, errors are more costly for b than for a. The costs can be made equal, but only by making scores worse for a.";
  for (const change of [{ sameCost: false }, { sameGroups: false }]) {
    assert.equal(plainText(sentencesOf(found(twoGroups(), change)).verdict), wanted);
  }
  assert.equal(sentencesOf(found(outOfReach(), { sameCost: false })).why, "As measured, it cannot be equal");
  const all = found(twoGroups());
  const never = { own: { ...all.own, confidence: null }, sameCost: false };
  assert.match(plainText(sentencesOf({ ...all, ...never }).verdict), /^Errors are more costly for b/);
  assert.match(plainText(sentencesOf(found(twoGroups(), { sameThreshold: false })).verdict), /^Errors are more costly for b/);
});

test("what was computed beforehand is dropped only where it no longer holds", () => {
  const all = found(twoGroups());
  assert.equal(staleText(all, "s"), "");
  assert.doesNotMatch(staleText({ ...all, sameThreshold: false }, "s"), /more than chance/);
  assert.match(staleText({ ...all, sameCost: false }, "s"), /audit’s own \(s\).*more than chance/);
  assert.equal(staleText({ ...all, sameCost: false, own: { confidence: null } }, "s"), "");
  assert.equal(holds("fpr", { ...all, sameThreshold: false }, false), false);
  assert.equal(holds("cost", { ...all, sameThreshold: false }, false), true);
  assert.equal(holds("brier", { ...all, sameGroups: false }, true), false);
  const state = { tolerance: 0.05, threshold: 0.5, off: [1] };
  assert.equal(
    plainText(settingsOf({ ...all, state }, "Cost of errors: misses")),
    "Cost of errors: misses. Allowed difference: 0.05. Decisions at a score of 0.5. Switched off: b.",
  );
});

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
      { method: "equalize_odds", threshold: 0.3, cost: null, tolerance: null, rule: null, why: "it is hard" },
      { ...coarsen, tolerance: 0, rule: null, why: "it would take more" },
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
