/** @file Algorithm 1: withhold information until errors cost every group the same. */

import { at } from "./numbers.js";
import { baseRate } from "./measures.js";
import { feasibility } from "./feasibility.js";
import { makeRule } from "./rules.js";

/** @import {Tally} from "./tally.js" */
/** @import {Cost} from "./costs.js" */
/** @import {Rule, Row} from "./rules.js" */

/** Replace a share alpha of each group's scores, chosen by a coin, by the base rate.
 * @param {Tally} tally @param {{cost: Cost, tolerance?: number}} settings
 * @returns {Rule | null} null if it is not feasible */
export function withhold(tally, { cost, tolerance = 0 }) {
  const reach = feasibility(tally, cost, tolerance);
  if (!reach.feasible) return null;
  /** @type {Row[]} */
  const rows = reach.changed.map((index) => ({
    group: at(tally.groups, index), lo: 0, hi: 1,
    action: "set", value: baseRate(at(tally.totals, index)), probability: at(reach.alpha, index),
  }));
  const settings = { tolerance, infeasible: "raise" };
  const coin = rows.some(({ probability }) => probability > 0 && probability < 1);
  const promise = {
    equal: { cost: tolerance }, asked: { cost: tolerance }, calibrated: true, coin, threshold: null, floor: {}, handed_over: []
  };
  return makeRule(tally, { method: "withhold", cost, settings, rows, notes: [], promise });
}
