/** @file Who is changed by a rule, by how much, and by what chance. */

import { at, sum } from "./numbers.js";
import { decides, firstBin, straddles } from "./tally.js";
import { isDeferred, portionsOf } from "./rules.js";

/** @import {Tally} from "./tally.js" */
/** @import {Portion, Rule} from "./rules.js" */
/** @import {Group} from "./groups.js" */

/** What a rule does to people, on average over the coin; decisions are NaN where it is not known who is on which side.
 * @typedef {{changed: number, by_coin: number, handed_over: number, decisions: number}} Changes */

/** A score that moves by no more than this has not moved. */
const SAME = 1e-12;

/** What a rule does to everybody, and to each group.
 * @param {Tally} tally @param {Rule} rule @param {number} [threshold]
 * @returns {{overall: Changes, groups: (Changes & {group: Group, name: string})[]}} */
export function changes(tally, rule, threshold = 0.5) {
  const portions = portionsOf(rule, tally);
  const first = firstBin(tally.cuts, threshold);
  return {
    overall: changesOf(portions, first, decides(tally, threshold)),
    groups: tally.groups.map((group, index) => {
      const own = portions.filter(({ cell }) => cell.group === index);
      return { group, name: at(tally.names, index), ...changesOf(own, first, decides(tally, threshold, index)) };
    }),
  };
}

/** @param {Portion[]} portions
 * @param {number} first the first bin at or above the threshold
 * @param {boolean} isDecided @returns {Changes} */
function changesOf(portions, first, isDecided) {
  /** @param {Portion[]} some */
  const weight = (some) => sum(some.map(({ cell, share }) => cell.w * share));
  const total = weight(portions);
  // Merged bins may come to lie across the threshold.
  const isKnown = isDecided && !portions.some(({ after }) => straddles(after, first));
  const turned = portions.filter(({ cell, after }) => cell.bin >= first !== after.bin >= first);
  return {
    // The old score is the mean of the cell.
    changed: weight(portions.filter(({ cell, after }) => Math.abs(after.wh - cell.wh) / cell.w > SAME)) / total,
    handed_over: weight(portions.filter(({ row }) => isDeferred(row))) / total,
    by_coin: weight(portions.filter(({ coin }) => coin)) / total,
    decisions: isKnown ? weight(turned) / total : Number.NaN,
  };
}
