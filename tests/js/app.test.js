import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { blockedOf, feasibility } from "./model.js";
import { counted, figuresOf, fill, fixed, isMany, listed, percent1, plainText, settingsOf, short, staleText } from "../../src/isocost/page/web/app/say.js";
import { fromHash, ownState, toHash, weightsOf } from "../../src/isocost/page/web/app/controls.js";
import { costsFigure, FIGURES, reliabilityFigure, valuesFigure, valuesFigures } from "../../src/isocost/page/web/app/figures.js";
import { planeFigure } from "../../src/isocost/page/web/app/plane.js";
import { sentencesOf } from "../../src/isocost/page/web/app/verdicts.js";
import { spreadOf } from "../../src/isocost/page/web/app/repairs.js";
import { measures, subset } from "./model.js";
import { tallyOf, twoGroups, words } from "./small.js";

/** @type {any} the browser's name for what node has as well */
(globalThis).window = globalThis;

const JUDGEMENT = JSON.parse(readFileSync("tests/js/judgement.json", "utf-8"));

/** What Python computed in advance about the cost.
 * @param {any} f @param {boolean} [isEstablished] @returns {any} */
function ofCostOf(f, isEstablished = true) {
  const [excess_low, excess_high] = f.feasible ? [-0.2, -0.1] : [0.1, 0.3];
  const findings = { difference_low: isEstablished ? 0.1 : 0, difference_high: 0.23, excess_low, excess_high };
  return { findings, highest: [f.target], difference: [0.1, 0.2], disparity: [0.1, 0.2], stretch: 2, intervals: [] };
}

/** What main.js computes, as far as sentences and pictures need it.
 * @param {any} tally
 * @param {any} [change]
 * @returns {any} */
function found(tally, { cost = { kind: "fpr" }, tolerance = 0, ...more } = {}) {
  const f = feasibility(tally, cost, tolerance);
  const own = {
    confidence: 0.95, tolerance: 0, groups: f.costs.length, intervals: f.costs.map(() => ({})), bias: [0, 0.03],
    examined: tally.names.map((/** @type {string} */ name) => ({ name, mean_score: 0.4, base_rate: 0.5, gap: 0.1, gap_low: 0, gap_high: 0.04 })),
    between: { under: { name: "a" }, over: { name: "b" }, bias_low: "3.0", bias_high: "6.0" },
    min_group: 30, min_label: 5, evidence: { fpr: {}, fnr: {} }, reconcilable: true,
  };
  return {
    f, m: measures(tally, { cost, threshold: 0.5 }), all: { n: 8 }, state: { threshold: 0.5, tolerance, off: [] },
    spoken: tally.names, called: tally.names, names: tally.names, shown: tally.groups.map((/** @type {any} */ _, /** @type {number} */ i) => i),
    words: { ...words(), People: "Patients", people: "patients", positive: "died", negative: "lived", score: "risk", costs: {} },
    judgement: JUDGEMENT, own, ofCost: ofCostOf(f), isOwn: true, tally, chosen: null, ...more,
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
  assert.deepEqual([fixed(-0.0504, 3), fixed(Number.NaN, 3), fixed(Infinity, 3)], ["−0.050", "–", "–"]);
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
  const known = { thresholds: [0.3, 0.5], methods: ["none", "withhold"], groups: 4 };
  assert.equal(toHash(own, own), "");
  const cost = { kind: /** @type {const} */ ("weighted"), fp: 1, fn: 2.5 };
  const state = { cost, tolerance: 0.03, threshold: 0.3, method: "none", off: [1, 3] };
  assert.deepEqual(fromHash(`#${toHash(state, own)}`, own, known), state);
  for (const bad of ["#cost=weighted:0,0", "#cost=weighted:1,1e999", "#tolerance=-1", "#tolerance=Infinity",
    "#threshold=0.33", "#method=alert", "#off=0.1.2", "#off=9", "#off=-1", "#%%%"]) {
    assert.deepEqual(fromHash(bad, own, known), own, bad);
  }
});

const GAP = "Patients who lived were given an average risk of 40\u00a0% if b, 25\u00a0% if a.";

test("numbers are written so that groups differ", () => {
  for (const [costs, decimals] of /** @type {[number[], number][]} */ ([[[0.447, 0.36], 1], [[0.0105, 0.0093], 2], [[0.2014, 0.2011], 2], [[0.2, 0.2], 1]])) {
    assert.equal(figuresOf(costs, "fpr").decimals, decimals, String(costs));
  }
  const rare = figuresOf([0.0105, 0.0093], "fpr");
  assert.deepEqual([rare.cost(0.0105), rare.difference(-0.0012), rare.tolerance(0.06), rare.enough(0.05381)], ["1.05\u00a0%", "−0.12 points", "6 points", "5.39 points"]);
  const harm = figuresOf([0.9, 0.8], "weighted");
  assert.deepEqual([harm.cost(0.9), harm.difference(0.1), harm.tolerance(0.06)], ["0.900", "0.100", "0.06"]);
});

test("a feasible repair is told, with the tolerance if there is one", () => {
  const exact = sentencesOf(found(twoGroups()));
  assert.equal(plainText(exact.verdict), `${GAP} That can be made equal, but only by making scores worse for a.`);
  assert.match(plainText(exact.next), /a coin would replace the score of \d+\.\d\u00a0% of a by the group’s average/);
  assert.equal(exact.why, "Why it can be equal");
  const close = sentencesOf(found(twoGroups(), { tolerance: 0.05 }));
  assert.equal(plainText(close.verdict), `${GAP} That can be brought down to 5 points, but only by making scores worse for a.`);
  assert.equal(close.why, "Why it can come that close");
  assert.match(plainText(close.geometry[2] ?? []), /^To cost as much as b, to within 5 points, a must move/);
  const open = sentencesOf(found(twoGroups(), { tolerance: 0.2 }));
  assert.equal(plainText(open.verdict), `${GAP} Whether costs differ by more than 20 points is not established.`);
  assert.equal(plainText(open.next), "Leave everybody’s score as it is. About 3 times as many people would settle it, if costs differ as much as measured.");
  const within = found(twoGroups(), { tolerance: 0.2 });
  const done = sentencesOf({ ...within, ofCost: { ...within.ofCost, findings: { ...within.ofCost.findings, difference_high: 0.2 } } });
  assert.equal(plainText(done.verdict), "Patients who lived were given the same average risk in every group, to within 20 points.");
  assert.equal(done.why, "Where the groups are");
  const misses = sentencesOf(found(twoGroups(), { cost: { kind: "fnr" } }));
  assert.match(plainText(misses.verdict), /^Patients who died were given an average risk of only \d/);
});

test("a choice of repair changes headline and tiles", () => {
  const changes = { changed: 0.25 };
  const chosen = { key: "reconcile", goal: "rates", label: "Reconcile", rule: {}, disparity: 0.12, odds: 0, changes };
  const told = sentencesOf(found(twoGroups(), { chosen, outlooks: { Reconcile: 0.13 } }));
  assert.equal(
    plainText(told.verdict),
    `${GAP} “Reconcile” would leave a difference of 12.0 points, make the rates of wrong decisions differ by 0.0 points, and change the scores of 25.0\u00a0% of all patients.`,
  );
  assert.deepEqual(told.keys.slice(3).map((/** @type {any} */ key) => [key.value, key.label]), [
    ["25.0\u00a0%", "of all scores would change"], ["13.0 points", "difference among new people"],
  ]);
  // What holds for the audit's own settings is not told for others.
  assert.equal(sentencesOf(found(twoGroups(), { chosen, outlooks: { Reconcile: 0.13 }, isOwn: false })).keys.length, 4);
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
  assert.match(plainText(told.verdict), /if b, .* if a, the two extremes of 3 groups\. No repair can/);
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
  assert.match(FIGURES["plane"]?.(both, LOOK, 600).told ?? "", /After the repair “Withhold”: a: false alarms 0\.900, misses 0\.100; b: /);
  assert.match(FIGURES["costs"]?.(both, LOOK, 600).told ?? "", /To match: 0\.400\. After the repair “Withhold”: a: cost 0\.900; b: cost 0\.300\.$/);
  for (const chosen of [{ key: "equalize_odds", goal: "rates", after }, { key: "rule:y", rule: { method: "mine" } }]) {
    const bars = costsFigure({ ...plain, chosen }, LOOK, 600).data;
    assert.deepEqual(bars["target"], []);
    assert.ok(!bars["texts"]?.some((one) => /reach|match/.test(one.text)));
    assert.doesNotMatch(FIGURES["costs"]?.({ ...plain, chosen }, LOOK, 600).told ?? "", /To match/);
  }
});

test("predictive values stand beside what scores predict", () => {
  const plain = found(twoGroups());
  const m = [{ false_omission_rate: 0.01, ppv: 0.7, base_rate: 0.02 }, { false_omission_rate: 0.02, ppv: Number.NaN, base_rate: 0.02 }];
  const sides = [{ passed: 0.012, selected: 0.6 }, { passed: 0.02, selected: Number.NaN }];
  const spans = { false_omission_rate: [0.005, 0.015], ppv: [0.6, 0.8] };
  const state = { ...plain.state, threshold: 0.5 };
  const told = { ...plain, state, m, sides, own: { intervals: [spans, {}] } };
  const { data, signals } = valuesFigure(told, LOOK, SIZE);
  assert.deepEqual(data["groups"]?.map(({ x, y }) => [x, y]), [[0.01, 0.7]]);
  assert.deepEqual(data["predicted"]?.map(({ x, y }) => [x, y]), [[0.012, 0.6]]);
  assert.deepEqual(data["whiskers"]?.map(({ x, x2, y, y2 }) => [x, x2, y, y2]), [[0.005, 0.015, 0.7, 0.7], [0.01, 0.01, 0.6, 0.8]]);
  assert.ok((signals["right"] ?? 1) < 0.1, "the corner at 0.5 is too far away across");
  assert.ok((signals["low"] ?? 1) < 0.02 && (signals["high"] ?? 0) > 0.8);
  assert.equal(valuesFigure({ ...told, own: { intervals: [{}, {}] } }, LOOK, SIZE).data["whiskers"]?.length, 0);
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
    return sentencesOf({ ...all, ofCost: ofCostOf(all.f, false) });
  };
  const two = unsure(twoGroups());
  assert.equal(plainText(two.verdict), `${GAP} It is not established that this is more than chance.`);
  assert.equal(plainText(two.next), "Leave everybody’s score as it is. About 2 times as many people would settle it, if costs differ as much as measured.");
  const many = unsure(outOfReach());
  assert.match(plainText(many.ledes[1] ?? []), /interval 10\.0 to 20\.0 points\)\.$/);
  assert.equal(many.why, "As measured, it cannot be equal");
  assert.ok(many.keys.every((/** @type {any} */ key) => !key.alert));
  assert.deepEqual([two.keys[3].value, two.keys[3].label], ["none", "of the repairs is advised"]);
  assert.equal(two.why, "Where the groups are");
  assert.equal(two.noneAdvised, "None of them is advised here: no difference beyond the tolerance is established.");
  assert.equal(sentencesOf(found(twoGroups())).noneAdvised, "");
  assert.equal(sentencesOf(found(outOfReach())).keys[3].alert, true);
});

test("a group that is off comes before what errors cost", () => {
  const all = found(twoGroups());
  const offBy = (/** @type {number[]} */ ...floors) => {
    const examined = floors.map((gap_low, i) => ({ ...all.own.examined[0], ...all.own.examined[i], gap_low }));
    return { ...all.own, examined };
  };
  const off = sentencesOf({ ...all, own: offBy(0.05, 0) });
  assert.match(plainText(off.verdict), /^The scores of a do not mean what they say: [\d.]+\u00a0% on average, when [\d.]+\u00a0% died\.$/);
  assert.match(plainText(off.ledes[0] ?? []), /^a: scores are .* beyond chance by at least 5\.0 points\.$/);
  assert.deepEqual(off.keys.map((/** @type {any} */ key) => key.alert ?? false), [false, true, false, false]);
  // A group that the page does not hold stays off, whoever is switched off.
  const outside = offBy(0, 0, 0.6);
  outside.examined[2] = { ...outside.examined[2], name: "c", base_rate: 1, gap: 0.7 };
  for (const shown of [[0, 1], [0]]) {
    const told = sentencesOf({ ...all, own: outside, shown });
    assert.match(plainText(told.verdict), shown.length > 1 ? /^The scores of c do not mean what they say: 40.0\u00a0% on average, when 100.0\u00a0% died\.$/ : /^There is too little/);
    if (shown.length > 1) assert.match(plainText(told.next), /^Check the labels of c: all are the same/);
    assert.match(plainText(told.keys[1].note), /^c;/);
  }
});

test("recalibration comes first if it moves the difference in cost", () => {
  const all = found(twoGroups());
  const [one, other] = [all.f.target, 1 - all.f.target];
  const now = all.f.costs[one] - all.f.costs[other];
  /** @param {number} then the difference if calibrated @param {number} tolerance */
  const said = (then, tolerance = 0, gap_low = 0.05) => {
    const costs = all.f.costs.map((/** @type {number} */ cost, /** @type {number} */ i) => (i === one ? cost + then - now : cost));
    const recalibrated = { costs, between: [one, other], change: [then - now - 0.01, then - now + 0.01] };
    const findings = { ...all.ofCost.findings, change: Math.abs(then - now) };
    const examined = all.own.examined.map((/** @type {any} */ group) => ({ ...group, gap_low }));
    const told = found(twoGroups(), { tolerance });
    const results = { ...told, ofCost: { ...all.ofCost, findings, recalibrated }, own: { ...told.own, examined } };
    const { verdict, ledes } = sentencesOf(results);
    return [verdict, ...ledes].map(plainText);
  };
  assert.match(said(now + 0.1)[0] ?? "", /^The costs of . and . differ by .* points, but by .* points if scores meant/);
  assert.match(said(now + 0.1)[1] ?? "", /^Calibration moves the difference by 10\.0 points .95.% interval 9\.0 to 11\.0 points.\. Shares/);
  assert.match(said(-0.05)[0] ?? "", /^The cost of . is .* points higher than that of ., but 5\.0 points lower/);
  // Less than a point, or than the tolerance, is said and stops nothing.
  for (const [then, tolerance] of [[now + 0.009, 0], [now + 0.04, 0.04]]) {
    const [verdict, , , third] = said(then ?? 0, tolerance);
    assert.doesNotMatch(verdict ?? "", /meant what they say/);
    assert.match(third ?? "", /too little, or too uncertain, to recalibrate first\. What is said about equal costs assumes/);
  }
});

test("that a score means the same is said if it is established", () => {
  const all = found(twoGroups());
  const said = (/** @type {number[]} */ bias, shown = [0, 1]) => {
    const { verdict, ledes } = sentencesOf({ ...all, own: { ...all.own, bias }, shown });
    return [plainText(verdict), ...ledes.map(plainText)];
  };
  const same = "On average, a score means the same in each group to within 2 points.";
  assert.ok(said([0, 0.02]).includes(same));
  assert.ok(!said([0, 0.021]).some((one) => one.startsWith("On average, a score")));
  assert.ok(said([0.03, 0.06]).some((one) => one.endsWith("The difference between groups is 3.0 to 6.0 points (95\u00a0% interval).")));
  const [headline, detail] = said([0.041, 0.06]);
  assert.equal(headline, "On average, a score does not mean the same for a as for b.");
  assert.match(detail ?? "", /^On average, a score does not mean the same in each group/);
  // The interval is about all groups together.
  assert.ok(!said([0.041, 0.06], [0]).some((one) => one.includes("does not mean the same")));
});

test("two groups are needed, and several may be the costliest", () => {
  const all = found(outOfReach());
  assert.equal(plainText(sentencesOf({ ...all, own: { ...all.own, groups: 1 } }).verdict), "There is too little data to compare the groups.");
  const told = sentencesOf({ ...all, ofCost: { ...all.ofCost, highest: [0, 1] } });
  assert.ok(told.ledes.some((/** @type {any} */ one) => plainText(one) === "Which group’s errors cost most is not established: it could be a or b."));
});

test("without evidence it is said to be as measured", () => {
  const wanted = `As measured: ${GAP} That can be made equal, but only by making scores worse for a.`;
  const bare = found(twoGroups(), { ofCost: null });
  assert.equal(plainText(sentencesOf(bare).verdict), wanted);
  assert.match(staleText(bare), /^Intervals were computed for fpr and fnr, and for all groups\./);
  assert.equal(staleText(found(twoGroups())), "");
  assert.equal(sentencesOf(found(outOfReach(), { ofCost: null })).why, "As measured, it cannot be equal");
  const never = { ...bare, own: { ...bare.own, confidence: null } };
  assert.ok(plainText(sentencesOf(never).verdict).startsWith(GAP));
  assert.equal(staleText(never), "");
  assert.equal(
    plainText(settingsOf({ ...bare, state: { tolerance: 0.05, threshold: 0.5, off: [1] } }, "Cost of errors: misses")),
    "Cost of errors: misses. Allowed difference: 5 points. Decisions at a score of 0.5. Switched off: b.",
  );
});
