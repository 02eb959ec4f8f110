/** @file Whether calibrated scores can cost every group the same, and what it would take. */

import { at } from "./numbers.js";
import { cannotCompare } from "./tally.js";
import { costOf, trivialCostOf } from "./measures.js";

/** @import {Tally} from "./tally.js" */
/** @import {Cost} from "./costs.js" */

/** How far rounding may put a cost beyond a bound that it meets, as a share of the costs. */
const COST_SLACK = 1e-12;

/** The facts of Python's Feasibility; lists run over the groups, and sets hold their indices.
 *
 * `target` is the index of the group whose errors cost most, `goal` its cost less the tolerance; `alpha` is above 1 or
 * infinite where no share is enough; `unreachable` cannot reach the goal, and `changed` lose some of their scores.
 * @typedef {{cost: Cost, tolerance: number, feasible: boolean, target: number, target_cost: number, goal: number,
 *   costs: number[], trivial_costs: number[], alpha: number[], unreachable: number[], changed: number[],
 *   smallest_tolerance: number, required_cost: number}} Feasibility */

/** Decide whether calibrated scores can cost every group the same.
 * @param {Tally} tally @param {Cost} cost @param {number} [tolerance] @returns {Feasibility} */
export function feasibility(tally, cost, tolerance = 0) {
  const refused = cannotCompare(tally);
  if (refused) throw new Error(refused);
  const { groups, totals } = tally;
  const costs = groups.map((group, i) => costOf(at(totals, i), group, cost));
  const trivial = groups.map((group, i) => trivialCostOf(at(totals, i), group, cost));
  const target = costs.indexOf(Math.max(...costs));
  const highest = at(costs, target);
  const goal = highest - tolerance;
  // A group that already costs more than its trivial score can at least stay where it is.
  const ceiling = costs.map((own, i) => Math.max(own, at(trivial, i)));
  const scale = Math.max(...ceiling);
  const isShort = ceiling.map((top) => goal > top + COST_SLACK * scale);
  const alpha = costs.map((own, i) => {
    const share = mixingRate(own, at(trivial, i), goal, scale);
    return isShort[i] ? share : Math.min(share, 1);
  });
  const required = Math.min(...ceiling);
  return {
    cost, tolerance, feasible: !isShort.includes(true), target, target_cost: highest, goal, costs, trivial_costs: trivial, alpha,
    unreachable: placesWhere(isShort),
    changed: placesWhere(alpha.map((share) => share > 0)),
    smallest_tolerance: Math.max(0, highest - required),
    required_cost: required,
  };
}

/** The share to withhold, (goal - g) / (trivial - g).
 * @param {number} own @param {number} trivial @param {number} goal @param {number} scale
 * @returns {number} */
function mixingRate(own, trivial, goal, scale) {
  const need = goal - own;
  if (need <= COST_SLACK * scale) return 0;
  return trivial > own ? need / (trivial - own) : Infinity;
}

/** @param {boolean[]} flags @returns {number[]} */
function placesWhere(flags) {
  return flags.flatMap((flag, index) => (flag ? [index] : []));
}
