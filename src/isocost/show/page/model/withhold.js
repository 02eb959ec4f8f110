/** @file Algorithm 1: withhold information until errors cost every group the same. */

import { at, general, roundUp } from "./numbers.js";
import { costText } from "./costs.js";
import { baseRate } from "./measures.js";
import { feasibility, feasibilityText } from "./feasibility.js";
import { makeRule } from "./rules.js";

/** @import {Tally} from "./tally.js" */
/** @import {Cost} from "./costs.js" */
/** @import {Rule} from "./rules.js" */
/** @import {Row} from "./rules.js" */
/** @import {Refused} from "./rules.js" */
/** @import {Feasibility} from "./feasibility.js" */

/** @typedef {{cost: Cost, tolerance?: number, infeasible?: "raise" | "closest",
 *   salt?: string}} WithholdSettings */

/** Replace a share alpha of each group's scores, chosen by a coin, by the base rate.
 * @param {Tally} tally
 * @param {WithholdSettings} settings
 * @returns {Rule | Refused} */
export function withhold(tally, { cost, tolerance = 0, infeasible = "raise", salt = "isocost" }) {
  const asked = feasibility(tally, cost, tolerance);
  if (!asked.feasible && infeasible === "raise") {
    const closest = withhold(tally, { cost, tolerance, infeasible: "closest", salt });
    return {
      infeasible: true,
      reason: "cost",
      message: feasibilityText(asked),
      smallest_tolerance: asked.smallest_tolerance,
      nearest: "rows" in closest ? closest : null,
    };
  }
  const found = asked.feasible ? asked : feasibility(tally, cost, asked.smallest_tolerance);
  /** @type {Row[]} */
  const rows = found.changed.map((place) => ({
    group: at(tally.groups, place),
    lo: 0,
    hi: 1,
    action: "set",
    value: baseRate(at(tally.totals, place)),
    probability: at(found.alpha, place),
  }));
  return makeRule(tally, {
    method: "withhold",
    cost,
    settings: {
      tolerance,
      infeasible,
      ...(asked.feasible ? {} : { reached: asked.smallest_tolerance }),
    },
    rows,
    notes: asked.feasible ? [] : [closestNote(asked, found)],
    salt,
  });
}

/** @param {Feasibility} asked
 * @param {Feasibility} found
 * @returns {string} */
function closestNote(asked, found) {
  const blank = found.names.filter((_, place) => found.alpha[place] === 1).join(", ");
  const price = blank ? `, and every score of ${blank} becomes the group's base rate` : "";
  return (
    `Equal cost (${costText(asked.cost)}) within ${general(asked.tolerance)} is not feasible. ` +
    `This is the closest: costs differ by ${roundUp(asked.smallest_tolerance)}${price}.`
  );
}
