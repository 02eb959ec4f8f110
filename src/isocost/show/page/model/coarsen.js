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
/** @import {Refused, Row, Rule} from "./rules.js" */
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
  goal = Math.min(goal, ...blocked.map((f) => f.limit));
  const { reached, repairs, missed } = poolsForAll(found, goal, tally, edges, mayChange);
  if (blocked.length || missed.length || !asked.feasible) {
    if (infeasible === "raise") {
      const enough = asked.target_cost - reached;
      return refusedCoarsening(tally, settings, asked, { blocked, missed, goal, enough }, edges);
    }
    short.reached = asked.target_cost - reached;
    notes.push(closestPools(asked, short.reached, blocked.length + missed.length > 0));
  }
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

/** The cost that all groups can be raised to, how, and the groups that kept it from the goal.
 * @param {Candidate[]} found
 * @param {number} goal
 * @param {Tally} tally
 * @param {number[]} edges
 * @param {boolean} mayCross
 * @returns {{reached: number, repairs: {rows: Row[], note: string}[], missed: Candidate[]}} */
function poolsForAll(found, goal, tally, edges, mayCross) {
  /** @type {Set<Candidate>} */
  const missed = new Set();
  let reached = goal;
  for (;;) {
    /** @type {{rows: Row[], note: string}[]} */
    const repairs = [];
    let lowest = Infinity;
    for (const one of found.filter((f) => f.cost < reached - COST_SLACK)) {
      const made = repaired(one, reached, tally, edges, mayCross);
      if ("rows" in made) repairs.push(made);
      else {
        missed.add(one);
        lowest = Math.min(lowest, made.lower);
      }
    }
    if (lowest === Infinity) return { reached, repairs, missed: [...missed] };
    reached = lowest;
  }
}

/** @param {number} threshold
 * @returns {Refused} */
function unknownSides(threshold) {
  const message = `The page does not know who is on which side of ${threshold}.`;
  const nothing = { smallest_tolerance: null, nearest: null };
  return { infeasible: true, reason: "threshold", message, ...nothing };
}

/** Why a goal is out of reach, and the tolerance that is enough.
 * @typedef {{blocked: Candidate[], missed: Candidate[], goal: number, enough: number}} Short */

/** @param {Tally} tally
 * @param {CoarsenSettings} settings
 * @param {Feasibility} asked
 * @param {Short} short
 * @param {number[]} edges
 * @returns {Refused} */
function refusedCoarsening(tally, settings, asked, short, edges) {
  const closest = coarsen(tally, { ...settings, infeasible: "closest" });
  const nearest = "rows" in closest ? closest : null;
  const isCost = !asked.feasible;
  const why = short.blocked.length ? blockedText : missedText;
  return {
    infeasible: true,
    reason: isCost ? "cost" : "decisions",
    message: isCost ? feasibilityText(asked) : why(asked, short, edges),
    smallest_tolerance: short.enough,
    nearest,
  };
}

/** Which cost cannot be had without a coin for several bins.
 * @param {Feasibility} asked
 * @param {Short} short
 * @param {number[]} edges
 * @returns {string} */
function missedText(asked, { missed, goal, enough }, edges) {
  const names = missed.map((f) => at(asked.names, f.place)).join(", ");
  return (
    `No pools of ${names} that randomize a single bin cost ${fixed4(goal)} while decisions at ` +
    `${listedEdges(edges)} stay as they are. It would take a tolerance of ${roundUp(enough)}, or ` +
    "pools that cross a threshold."
  );
}

/** @param {number[]} edges
 * @returns {string} */
function listedEdges(edges) {
  return edges.map((edge) => general(edge)).join(", ");
}

/** How far coarsening can go without changing a decision.
 * @param {Feasibility} asked
 * @param {Short} short
 * @param {number[]} edges
 * @returns {string} */
function blockedText(asked, { blocked, enough }, edges) {
  const limits = blocked.map(
    (f) =>
      `the largest cost of ${at(asked.names, f.place)} that leaves every decision alone is ` +
      fixed4(f.limit),
  );
  return (
    `Costs cannot be raised to ${fixed4(asked.goal)} while decisions at ${listedEdges(edges)} stay as ` +
    `they are: ${limits.join("; ")}. It would take a tolerance of at least ${roundUp(enough)}, ` +
    "or pools that cross a threshold."
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
