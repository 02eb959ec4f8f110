/** @file Coarsening: pool neighbouring scores until errors cost every group the same. */

import { at, fixed4, general, roundUp } from "./numbers.js";
import { decides } from "./tally.js";
import { costText } from "./costs.js";
import { COST_SLACK, feasibility, feasibilityText } from "./feasibility.js";
import { makeRule } from "./rules.js";
import { candidates, repaired } from "./remedy.js";

/** @import {Tally} from "./tally.js" */
/** @import {Cost} from "./costs.js" */
/** @import {Feasibility} from "./feasibility.js" */
/** @import {Refused, Rule} from "./rules.js" */
/** @import {Candidate} from "./remedy.js" */

/** @typedef {object} CoarsenSettings
 * @property {Cost} cost
 * @property {number[]} [thresholds] at which no decision changes
 * @property {number} [tolerance]
 * @property {"raise" | "closest"} [infeasible]
 * @property {boolean} [allow_decision_changes]
 * @property {string} [salt] */

/** Make errors cost every group the same by pooling neighbouring scores.
 * @param {Tally} tally
 * @param {CoarsenSettings} settings
 * @returns {Rule | Refused} */
export function coarsen(tally, settings) {
  const { cost, tolerance = 0, infeasible = "raise", salt } = settings;
  const { thresholds = [0.5], allow_decision_changes: mayChange = false } = settings;
  const edges = [...new Set(thresholds)].sort((a, b) => a - b);
  const unknown = edges.find((edge) => !decides(tally, edge));
  if (unknown !== undefined) return unknownSides(unknown);
  const asked = feasibility(tally, cost, tolerance);
  let goal = asked.target_cost - Math.max(tolerance, asked.smallest_tolerance);
  const found = candidates(tally, cost, edges, goal - COST_SLACK);
  const blocked = mayChange ? [] : found.filter((f) => f.limit < goal - COST_SLACK);
  /** @type {string[]} */
  const notes = [];
  /** @type {{reached?: number}} */
  const short = {};
  if (blocked.length || !asked.feasible) {
    if (infeasible === "raise") return refusedCoarsening(tally, settings, asked, blocked, edges);
    goal = Math.min(goal, ...blocked.map((f) => f.limit));
    short.reached = asked.target_cost - goal;
    notes.push(closestPools(asked, asked.target_cost - goal, blocked.length > 0));
  }
  const repairs = found
    .filter((f) => f.cost < goal - COST_SLACK)
    .map((f) => repaired(f, goal, tally, edges));
  return makeRule(tally, {
    method: "coarsen",
    cost,
    settings: {
      thresholds: edges,
      tolerance,
      infeasible,
      ...short,
      allow_decision_changes: mayChange,
    },
    rows: repairs.flatMap(({ rows }) => rows),
    notes: [...notes, ...repairs.map(({ note }) => note)],
    ...(salt === undefined ? {} : { salt }),
  });
}

/** @param {number} threshold
 * @returns {Refused} */
function unknownSides(threshold) {
  const message = `The page does not know who is on which side of ${threshold}.`;
  const nothing = { smallest_tolerance: null, nearest: null };
  return { infeasible: true, reason: "threshold", message, ...nothing };
}

/** @param {Tally} tally
 * @param {CoarsenSettings} settings
 * @param {Feasibility} asked
 * @param {Candidate[]} blocked
 * @param {number[]} edges
 * @returns {Refused} */
function refusedCoarsening(tally, settings, asked, blocked, edges) {
  const closest = coarsen(tally, { ...settings, infeasible: "closest" });
  const nearest = "rows" in closest ? closest : null;
  const { target_cost: highest, smallest_tolerance: smallest } = asked;
  const enough = Math.max(smallest, ...blocked.map((f) => highest - f.limit));
  const isCost = !asked.feasible;
  return {
    infeasible: true,
    reason: isCost ? "cost" : "decisions",
    message: isCost ? feasibilityText(asked) : blockedText(asked, blocked, edges, enough),
    smallest_tolerance: enough,
    nearest,
  };
}

/** How far coarsening can go without changing a decision.
 * @param {Feasibility} asked
 * @param {Candidate[]} blocked
 * @param {number[]} edges
 * @param {number} enough
 * @returns {string} */
function blockedText(asked, blocked, edges, enough) {
  const listed = edges.map((edge) => general(edge)).join(", ");
  const limits = blocked.map(
    (f) =>
      `the largest cost of ${at(asked.names, f.place)} that leaves every decision alone is ` +
      fixed4(f.limit),
  );
  return (
    `Costs cannot be raised to ${fixed4(asked.goal)} while decisions at ${listed} stay as they ` +
    `are: ${limits.join("; ")}. It would take a tolerance of at least ${roundUp(enough)}, or ` +
    "pools that cross a threshold."
  );
}

/** @param {Feasibility} asked
 * @param {number} difference
 * @param {boolean} isBlocked
 * @returns {string} */
function closestPools(asked, difference, isBlocked) {
  const why = isBlocked ? " without changing a decision" : "";
  return (
    `Equal cost (${costText(asked.cost)}) within ${general(asked.tolerance)} is not ` +
    `feasible${why}. This is the closest: costs differ by ${fixed4(difference)}.`
  );
}
