/** @file Answers to the questions that tests/test_model_js.py asks: JSON in, JSON out. */

import { readFileSync } from "node:fs";
import * as model from "../../src/isocost/show/page/model.js";

/** @typedef {import("../../src/isocost/show/page/model/tally.js").Tally} Tally */
/** @typedef {import("../../src/isocost/show/page/model/tally.js").Payload} Payload */
/** @typedef {import("../../src/isocost/show/page/model/costs.js").Cost} Cost */

/** @typedef {object} Question
 * @property {string} tally
 * @property {number[] | null} groups
 * @property {Cost} cost
 * @property {number} threshold
 * @property {number[]} [thresholds] for coarsening; without them the threshold
 * @property {number} tolerance
 * @property {boolean} odds whether equalized odds is wanted
 * @property {boolean} cells whether the cells after the rules are wanted */

/** @type {{tallies: Record<string, Payload>, questions: Question[]}} */
const asked = JSON.parse(readFileSync(0, "utf-8"));
const tallies = new Map(
  Object.entries(asked.tallies).map(([name, payload]) => [name, model.readTally(payload)]),
);
process.stdout.write(JSON.stringify(asked.questions.map(answer)));

/** @param {Question} question */
function answer(question) {
  const whole = tallies.get(question.tally);
  if (!whole) throw new Error(`no tally ${question.tally}`);
  const tally = question.groups ? model.subset(whole, question.groups) : whole;
  const { threshold, tolerance } = question;
  const cost = model.costFor(question.cost, tally.groups);
  const found = model.feasibility(tally, cost, tolerance);
  const common = { cost, tolerance };
  const pools = { ...common, thresholds: question.thresholds ?? [threshold] };
  const rules = {
    withhold: model.withhold(tally, common),
    "withhold closest": model.withhold(tally, { ...common, infeasible: "closest" }),
    coarsen: model.coarsen(tally, pools),
    "coarsen closest": model.coarsen(tally, { ...pools, infeasible: "closest" }),
    "coarsen across": model.coarsen(tally, { ...pools, allow_decision_changes: true }),
  };
  const odds = {
    odds: model.equalizeOdds(tally, { threshold }),
    "odds hard": model.equalizeOdds(tally, { threshold, rates: "hard" }),
  };
  const wanted = Object.entries(question.odds ? { ...rules, ...odds } : rules);
  return {
    measures: model.measures(tally, { threshold, cost }),
    overall: model.overall(tally, { threshold, cost }),
    feasibility: found,
    verdict: model.feasibilityText(found),
    reliability: tally.groups.map((_, place) => model.reliability(tally, place)),
    rules: Object.fromEntries(
      wanted.map(([name, rule]) => [name, told(rule, tally, question, cost)]),
    ),
  };
}

/** @param {ReturnType<typeof model.coarsen>} rule
 * @param {Tally} tally
 * @param {Question} question
 * @param {Cost} cost */
function told(rule, tally, question, cost) {
  if (!("rows" in rule)) {
    const { reason, message, smallest_tolerance: smallest, nearest } = rule;
    return { refused: reason, message, smallest, nearest: nearest && model.jsonText(nearest) };
  }
  const after = model.expected(rule, tally);
  const { threshold } = question;
  return {
    text: model.jsonText(rule),
    after: model.measures(after, { threshold, cost }),
    overall: model.overall(after, { threshold, cost }),
    changes: model.changes(tally, rule, threshold),
    cells: question.cells ? after.cells : null,
  };
}
