/** @file The numbers of one group, and of everybody. */

import { addUp, at, justBelow, countAtMost, sum } from "./numbers.js";
import { decides, firstBin, joinTo, pooled, weightOf } from "./tally.js";
import { coefficients, isPerGroup } from "./costs.js";

/** @import {Measure, Sums, Tally} from "./tally.js" */
/** @import {Cost} from "./costs.js" */
/** @import {Group} from "./groups.js" */

/** The numbers of Python's Measures by name; NaN where one does not exist or is not known.
 * @typedef {Record<string, number> & {n: number, weight: number, share: number, base_rate: number,
 *   generalized_fpr: number, generalized_fnr: number, fpr: number, fnr: number, accuracy: number,
 *   calibration_gap: number, cost: number, trivial_cost: number}} Measures */

/** @typedef {Measures & {group: Group, name: string}} GroupMeasures */

/** The kinds of people at a threshold, by label and then side, as in Python. */
const KINDS = ["tn", "fp", "fn", "tp"];

/** People in one bin of a group, whatever their label.
 * @typedef {{position: number, w: number, wy: number, wh: number, w2: number, n: number, first: number, end: number}}
 *   Level */

/** The share of positives, mu.
 * @param {Sums} sums */
export function baseRate(sums) {
  return sums.w[1] / weightOf(sums);
}

/** The mean score of the negatives, c_fp.
 * @param {Sums} sums */
function generalizedFpr(sums) {
  return sums.wh[0] / sums.w[0];
}

/** One minus the mean score of the positives, c_fn.
 * @param {Sums} sums */
function generalizedFnr(sums) {
  return (sums.w[1] - sums.wh[1]) / sums.w[1];
}

/** The cost g = a c_fp + b c_fn.
 * @param {Sums} sums @param {Group} group @param {Cost} cost */
export function costOf(sums, group, cost) {
  const [a, b] = coefficients(cost, group, baseRate(sums));
  return a * generalizedFpr(sums) + b * generalizedFnr(sums);
}

/** The cost if everybody's score were the base rate, a mu + b (1 - mu).
 * @param {Sums} sums @param {Group} group @param {Cost} cost */
export function trivialCostOf(sums, group, cost) {
  const mu = baseRate(sums);
  const [a, b] = coefficients(cost, group, mu);
  return a * mu + b * (1 - mu);
}

/** The numbers of every group.
 * @param {Tally} tally @param {{threshold: number, cost: Cost}} settings
 * @returns {GroupMeasures[]} */
export function measures(tally, { threshold, cost }) {
  const all = sum(tally.totals.map(weightOf));
  return tally.groups.map((group, index) => {
    const sums = at(tally.totals, index);
    return {
      group,
      name: at(tally.names, index),
      ...plainNumbers(tally, threshold, index),
      share: weightOf(sums) / all,
      calibration_gap: calibrationGap(levelsOf(tally, index)),
      cost: costOf(sums, group, cost),
      trivial_cost: trivialCostOf(sums, group, cost),
    };
  });
}

/** The same for everybody together; a cost that differs by group has no meaning there.
 * @param {Tally} tally @param {{threshold: number, cost: Cost}} settings @returns {Measures} */
export function overall(tally, { threshold, cost }) {
  const sums = pooled(tally.totals);
  const meaningless = isPerGroup(cost);
  return {
    ...plainNumbers(tally, threshold),
    share: 1,
    calibration_gap: calibrationGap(levelsOf(tally)),
    cost: meaningless ? Number.NaN : costOf(sums, "all", cost),
    trivial_cost: meaningless ? Number.NaN : trivialCostOf(sums, "all", cost),
  };
}

/** The sums over one kind of people.
 * @typedef {{w: number, wh: number, wh2: number}} KindSums */

/** The numbers of the table of measures, and how many people there are, of a group or of everybody.
 *
 * Where merged bins lie across the threshold, what depends on it is not known.
 * @param {Tally} tally @param {number} threshold @param {number} [group] @returns {any} */
function plainNumbers(tally, threshold, group) {
  const first = firstBin(tally.cuts, threshold);
  const isDecided = decides(tally, threshold, group);
  const kinds = Object.fromEntries(KINDS.map((kind) => [kind, { w: 0, wh: 0, wh2: 0 }]));
  let [n, weight] = [0, 0];
  for (const cell of tally.cells) {
    if (group !== undefined && cell.group !== group) continue;
    const sums = kinds[at(KINDS, 2 * cell.label + Number(cell.bin >= first))];
    if (sums) addUp(sums, cell, ["w", "wh", "wh2"]);
    n += cell.n;
    weight += cell.w;
  }
  const values = Object.entries(tally.measures).map(([name, row]) => [
    name,
    row.uses_threshold && !isDecided ? Number.NaN : meanOf(row, kinds),
  ]);
  return { n, weight, ...Object.fromEntries(values) };
}

/** A measure, from the sums of the kinds of people; NaN if nobody is of its kinds.
 * @param {Measure} row @param {Record<string, KindSums>} kinds @returns {number} */
function meanOf(row, kinds) {
  let [added, total] = [0, 0];
  for (const [kind, one] of Object.entries(kinds)) {
    if (!row.over.includes(kind)) continue;
    const [a, b, c] = row.adds[kind] ?? [0, 0, 0];
    added += a * one.w + b * one.wh + c * one.wh2;
    total += one.w;
  }
  return total > 0 ? added / total : Number.NaN;
}

/** The bins of one group, or of everybody, that hold anybody.
 * @param {Tally} tally @param {number} [group] @returns {Level[]} */
export function levelsOf(tally, group) {
  /** @type {Map<number, Level>} */
  const byBin = new Map();
  for (const cell of tally.cells) {
    if (group !== undefined && cell.group !== group) continue;
    const { first, end } = cell;
    const level = byBin.get(cell.bin) ?? { position: 0, w: 0, wy: 0, wh: 0, w2: 0, n: 0, first, end };
    byBin.set(cell.bin, level);
    joinTo(level, { ...cell, wy: cell.w * cell.label }, ["w", "wy", "wh", "w2", "n"]);
  }
  const levels = [...byBin.entries()].sort(([a], [b]) => a - b).map(([, level]) => level);
  for (const level of levels) level.position = positionOf(level, tally.cuts);
  return levels;
}

/** The mean score, which rounding must not carry over an edge.
 * @param {{w: number, wh: number, first: number, end: number}} one @param {number[]} cuts
 * @returns {number} */
export function positionOf(one, cuts) {
  const mean = Math.max(one.wh / one.w, at(cuts, one.first));
  const top = at(cuts, one.end);
  return mean < top ? mean : justBelow(top);
}

/** Levels added up over so many bins of equal width; bins without anybody are left out.
 * @param {Level[]} levels @param {number} bins
 * @returns {{bin: number, n: number, w: number, wy: number, wh: number, w2: number}[]} */
export function pooledLevels(levels, bins) {
  const cuts = Array.from({ length: bins + 1 }, (_, i) => i / bins);
  const binned = cuts.slice(1).map((_, bin) => ({ bin, n: 0, w: 0, wy: 0, wh: 0, w2: 0 }));
  for (const level of levels) {
    const bin = countAtMost(cuts, level.position) - 1;
    const one = at(binned, Math.min(Math.max(bin, 0), bins - 1));
    addUp(one, level, ["n", "w", "wy", "wh", "w2"]);
  }
  return binned.filter((one) => one.w > 0);
}

/** The plug-in calibration gap over ten bins of equal width.
 * @param {Level[]} levels @returns {number} */
function calibrationGap(levels) {
  const off = pooledLevels(levels, 10).map((one) => Math.abs(one.wy - one.wh));
  return sum(off) / sum(levels.map((level) => level.w));
}
