/** @file The numbers of one group, and of everybody, and whether costs can be equal. */

import { addUp, at, justBelow, countAtMost, sum } from "./numbers.js";
import { decides, firstBin, joinTo, pooled, weightOf } from "./tally.js";
import { coefficients, isPerGroup } from "./costs.js";

/** @import {Measure, Sums, Tally} from "./tally.js" */
/** @import {Cost} from "./costs.js" */
/** @import {Group} from "./numbers.js" */

/** The numbers of Python's Measures by name; NaN where one does not exist or is not known.
 * @typedef {Record<string, number> & {n: number, weight: number, share: number, base_rate: number,
 *   generalized_fpr: number, generalized_fnr: number, fpr: number, fnr: number, accuracy: number,
 *   calibration_gap: number, cost: number, trivial_cost: number}} Measures */

/** @typedef {Measures & {group: Group, name: string}} GroupMeasures */

/** The kinds of people at a threshold, by label and then side, as in Python. */
const KINDS = ["tn", "fp", "fn", "tp"];

/** People in one bin of a group, whatever their label.
 * @typedef {{position: number, w: number, wy: number, wh: number, first: number, end: number}}
 *   Level */

/** The share of positives, mu.
 * @param {Sums} sums */
export function baseRate(sums) {
  return sums.w[1] / weightOf(sums);
}

/** The cost g = a c_fp + b c_fn, of the mean score of the negatives and one minus that of the positives.
 * @param {Sums} sums @param {Group} group @param {Cost} cost */
export function costOf(sums, group, cost) {
  const [a, b] = coefficients(cost, group, baseRate(sums));
  return a * (sums.wh[0] / sums.w[0]) + b * ((sums.w[1] - sums.wh[1]) / sums.w[1]);
}

/** The cost if everybody's score were the base rate, a mu + b (1 - mu).
 * @param {Sums} sums @param {Group} group @param {Cost} cost */
export function trivialCostOf(sums, group, cost) {
  const mu = baseRate(sums);
  const [a, b] = coefficients(cost, group, mu);
  return a * mu + b * (1 - mu);
}

/** @param {Tally} tally @param {{threshold: number, cost: Cost}} settings
 * @returns {GroupMeasures[]} */
export function measures(tally, { threshold, cost }) {
  const all = sum(tally.totals.map(weightOf));
  return tally.groups.map((group, index) => {
    const sums = at(tally.totals, index);
    const costs = { cost: costOf(sums, group, cost), trivial_cost: trivialCostOf(sums, group, cost) };
    return { group, name: at(tally.names, index), ...numbersOf(tally, threshold, index), share: weightOf(sums) / all, ...costs };
  });
}

/** The same for everybody together; a cost that differs by group has no meaning there.
 * @param {Tally} tally @param {{threshold: number, cost: Cost}} settings @returns {Measures} */
export function overall(tally, { threshold, cost }) {
  const sums = pooled(tally.totals);
  const [own, trivial] = isPerGroup(cost) ? [Number.NaN, Number.NaN] : [costOf(sums, "all", cost), trivialCostOf(sums, "all", cost)];
  return { ...numbersOf(tally, threshold), share: 1, cost: own, trivial_cost: trivial };
}

/** The sums over one kind of people.
 * @typedef {{w: number, wh: number, wh2: number}} KindSums */

/** The numbers of the table of measures, the gap, and how many people there are, of a group or of everybody; where
 * merged bins lie across the threshold, what depends on it is not known.
 * @param {Tally} tally @param {number} threshold @param {number} [group] @returns {any} */
function numbersOf(tally, threshold, group) {
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
  return { n, weight, ...Object.fromEntries(values), calibration_gap: calibrationGap(levelsOf(tally, group)) };
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

/** @param {Tally} tally @param {number} [group] @returns {Level[]} */
function levelsOf(tally, group) {
  /** @type {Map<number, Level>} */
  const byBin = new Map();
  for (const cell of tally.cells) {
    if (group !== undefined && cell.group !== group) continue;
    const { first, end } = cell;
    const level = byBin.get(cell.bin) ?? { position: 0, w: 0, wy: 0, wh: 0, first, end };
    byBin.set(cell.bin, level);
    joinTo(level, { ...cell, wy: cell.w * cell.label }, ["w", "wy", "wh"]);
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

/** The plug-in calibration gap over ten bins of equal width.
 * @param {Level[]} levels @returns {number} */
function calibrationGap(levels) {
  const cuts = Array.from({ length: 11 }, (_, i) => i / 10);
  const off = cuts.slice(1).map(() => ({ wy: 0, wh: 0 }));
  for (const level of levels) addUp(at(off, Math.min(countAtMost(cuts, level.position) - 1, 9)), level, ["wy", "wh"]);
  return sum(off.map(({ wy, wh }) => Math.abs(wy - wh))) / sum(levels.map((level) => level.w));
}

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
  const { groups, totals } = tally;
  const costs = groups.map((group, i) => costOf(at(totals, i), group, cost));
  const trivial = groups.map((group, i) => trivialCostOf(at(totals, i), group, cost));
  const target = costs.indexOf(Math.max(...costs));
  const highest = at(costs, target);
  const { goal, ceiling, isShort, alpha } = withheld(costs, trivial, tolerance);
  const required = Math.min(...ceiling);
  return {
    cost, tolerance, feasible: !isShort.includes(true), target, target_cost: highest, goal, costs, trivial_costs: trivial, alpha,
    unreachable: placesWhere(isShort),
    changed: placesWhere(alpha.map((share) => share > 0)),
    smallest_tolerance: Math.max(0, highest - required),
    required_cost: required,
  };
}

/** The shares to withhold, and what they are made from; see Feasibility.
 * @param {number[]} costs @param {number[]} trivial @param {number} tolerance */
export function withheld(costs, trivial, tolerance) {
  const goal = Math.max(...costs) - tolerance;
  // A group that already costs more than its trivial score can at least stay where it is.
  const ceiling = costs.map((own, i) => Math.max(own, at(trivial, i)));
  const scale = Math.max(...ceiling);
  const isShort = ceiling.map((top) => goal > top + COST_SLACK * scale);
  // The share to withhold is (goal - g) / (trivial - g).
  const alpha = costs.map((own, i) => {
    if (goal - own <= COST_SLACK * scale) return 0;
    const share = at(trivial, i) > own ? (goal - own) / (at(trivial, i) - own) : Infinity;
    return isShort[i] ? share : Math.min(share, 1);
  });
  return { goal, ceiling, isShort, alpha };
}

/** @param {boolean[]} flags @returns {number[]} */
function placesWhere(flags) {
  return flags.flatMap((flag, index) => (flag ? [index] : []));
}

/** The group that is furthest from where it would have to be.
 * @param {Feasibility} f @returns {number} */
export function blockedOf(f) {
  /** @param {number} i */
  const ceiling = (i) => Math.max(at(f.costs, i), at(f.trivial_costs, i));
  const others = f.costs.map((_, i) => i).filter((i) => i !== f.target);
  return (f.unreachable.length ? f.unreachable : others).reduce((a, b) => (ceiling(b) < ceiling(a) ? b : a));
}
