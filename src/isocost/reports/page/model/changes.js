/** @file Who is changed by a rule, by how much, and by what chance. */

import { at, sum } from "./numbers.js";
import { decides, firstBin, straddles } from "./tally.js";
import { binsOf, movedCell, needsCoin, requireWhole, segmentsOf } from "./rules.js";

/** @import {Cell, Tally} from "./tally.js" */
/** @import {Rule, Row} from "./rules.js" */
/** @import {Group} from "./groups.js" */

/** What a rule does to people, on average over the coin; see Python's Changes.
 * @typedef {object} Changes
 * @property {number} changed
 * @property {number} by_coin
 * @property {number} decisions NaN where it is not known who is on which side */

/** Part of a cell with one fate; whether its decision is turned may be unknown (NaN).
 * @typedef {{weight: number, distance: number, turned: number, coin: boolean}} Outcome */

/** A score that moves by no more than this has not moved. */
const SAME = 1e-12;

/** What a rule does to everybody, and to each group.
 * @param {Tally} tally
 * @param {Rule} rule
 * @param {number} [threshold]
 * @returns {{overall: Changes, groups: (Changes & {group: Group, name: string})[]}} */
export function changes(tally, rule, threshold = 0.5) {
  const outcomes = tally.groups.map((_, place) => outcomesOf(tally, rule, threshold, place));
  return {
    overall: changesOf(outcomes.flat(), decides(tally, threshold)),
    groups: outcomes.map((parts, place) => ({
      group: at(tally.groups, place),
      name: at(tally.names, place),
      ...changesOf(parts, decides(tally, threshold, place)),
    })),
  };
}

/** @param {Outcome[]} outcomes
 * @param {boolean} isDecided
 * @returns {Changes} */
function changesOf(outcomes, isDecided) {
  const total = sum(outcomes.map((part) => part.weight));
  /** @param {(part: Outcome) => boolean} which */
  const share = (which) => sum(outcomes.filter(which).map((part) => part.weight)) / total;
  return {
    changed: share((part) => part.distance > SAME),
    by_coin: share((part) => part.coin),
    decisions: isDecided ? sum(outcomes.map((part) => part.weight * part.turned)) / total : Number.NaN,
  };
}

/** Every fate that a person of a group can have, with its weight.
 * @param {Tally} tally
 * @param {Rule} rule
 * @param {number} threshold
 * @param {number} place
 * @returns {Outcome[]} */
function outcomesOf(tally, rule, threshold, place) {
  const cells = tally.cells.filter((cell) => cell.group === place);
  const segments = segmentsOf(rule, at(tally.groups, place)).map((segment) => {
    return { segment, bins: binsOf(tally, segment) };
  });
  const first = firstBin(tally.cuts, threshold);
  return cells.flatMap((cell) => {
    for (const { bins } of segments) requireWhole(cell, ...bins);
    const own = segments.find(({ bins }) => cell.bin >= bins[0] && cell.bin < bins[1]);
    if (!own) return [{ weight: cell.w, distance: 0, turned: 0, coin: false }];
    const coin = needsCoin(own.segment);
    const fates = own.segment.rows.map((row) => ({ ...fateOf(cell, row, tally, first), coin }));
    const left = 1 - sum(own.segment.rows.map((row) => row.probability));
    const kept = cell.w * Math.min(Math.max(left, 0), 1);
    return [...fates, { weight: kept, distance: 0, turned: 0, coin }];
  });
}

/** What a row does to its share of a cell; the old score is the mean of the cell.
 * @param {Cell} cell
 * @param {Row} row
 * @param {Tally} tally
 * @param {number} first the first bin at or above the threshold
 * @returns {{weight: number, distance: number, turned: number}} */
function fateOf(cell, row, tally, first) {
  const after = movedCell(cell, row, tally.cuts);
  const distance = Math.abs(after.wh - cell.wh) / cell.w;
  // Merged bins may come to lie across the threshold.
  const turned = straddles(after, first) ? Number.NaN : Number(after.bin >= first !== cell.bin >= first);
  return { weight: cell.w * row.probability, distance, turned };
}
