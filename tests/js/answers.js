/** @file Answers to the questions that tests/test_model_js.py asks: JSON in, JSON out. */

import { readFileSync } from "node:fs";
import * as model from "./model.js";
import { fullRule } from "../../src/isocost/page/web/app/repairs.js";

/** @typedef {import("../../src/isocost/page/web/model/tally.js").Tally} Tally */
/** @typedef {import("../../src/isocost/page/web/model/tally.js").Payload} Payload */
/** @typedef {import("../../src/isocost/page/web/model/costs.js").Cost} Cost */
/** @typedef {import("../../src/isocost/page/web/model/rules.js").Rule} Rule */

/** @typedef {object} Question
 * @property {string} tally
 * @property {number[] | null} groups
 * @property {Cost} cost
 * @property {number} threshold
 * @property {number} tolerance
 * @property {any[]} given rules that Python made, as they stand in the page
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
  const rule = model.withhold(tally, { cost, tolerance });
  const places = tally.groups.map((_, place) => place);
  return {
    measures: model.measures(tally, { threshold, cost }),
    overall: model.overall(tally, { threshold, cost }),
    feasibility: found,
    withhold: rule && told(rule, tally, question, cost),
    given: question.given.map((compact) => told(fullRule(compact, tally, places), tally, question, cost)),
  };
}

/** @param {Rule} rule
 * @param {Tally} tally
 * @param {Question} question
 * @param {Cost} cost */
function told(rule, tally, { threshold, cells }, cost) {
  const after = model.expected(rule, tally);
  return {
    text: model.jsonText(rule),
    after: model.measures(after, { threshold, cost }),
    overall: model.overall(after, { threshold, cost }),
    changes: model.changes(tally, rule, threshold),
    cells: cells ? after.cells : null,
  };
}
