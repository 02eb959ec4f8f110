/** @file What the charts show: reliability, and the plane of the two generalized rates. */

import { at } from "./numbers.js";
import { coefficients, isPerGroup } from "./costs.js";
import { baseRate, costOf, generalizedFnr, generalizedFpr, levelsOf, pooledLevels, trivialCostOf } from "./measures.js";

/** @import {Tally} from "./tally.js" */
/** @import {Cost} from "./costs.js" */
/** @import {Group} from "./groups.js" */

/** People with scores in [lo, hi), the last hi included; low and high are Wilson's interval of the
 * share of positives.
 * @typedef {object} ReliabilityPoint
 * @property {number} lo
 * @property {number} hi
 * @property {number} n
 * @property {number} weight
 * @property {number} mean_score
 * @property {number} mean_label
 * @property {number} low
 * @property {number} high */

/** A place in the plane: x is the generalized false-positive rate, y the false-negative one.
 * @typedef {{x: number, y: number}} Point */

/** A group in the plane.
 * @typedef {object} PlaneGroup
 * @property {Group} group
 * @property {string} name
 * @property {number} base_rate
 * @property {number} cost
 * @property {number} trivial_cost
 * @property {Point} point where it is
 * @property {Point} trivial where the base rate for everybody is
 * @property {Point[]} line all its calibrated scores, from perfect to trivial
 * @property {Point | null} goal where its calibrated scores cost the target; null if they cannot */

/** @typedef {object} Plane
 * @property {PlaneGroup[]} groups
 * @property {Point[]} diagonal all constant scores
 * @property {number} target
 * @property {Point[]} level calibrated scores of any base rate that cost the target; none if
 *   the cost differs by group */

/** The normal quantile of a 95 % interval. */
const Z95 = 1.959963984540054;

/** Into how many steps a level curve is divided. */
const STEPS = 200;

/** Mean label against mean score, over bins of equal width that hold anybody.
 *
 * With weights the number of rows is (sum w)^2 / sum w^2.
 * @param {Tally} tally
 * @param {number} groupIndex
 * @param {number} [bins]
 * @returns {ReliabilityPoint[]} */
export function reliability(tally, groupIndex, bins = 10) {
  return pooledLevels(levelsOf(tally, groupIndex), bins).map(({ place, n, w, wy, wh, w2 }) => {
    const [low, high] = wilson(wy / w, (w * w) / w2, Z95);
    const [lo, hi] = [place / bins, (place + 1) / bins];
    return { lo, hi, n, weight: w, mean_score: wh / w, mean_label: wy / w, low, high };
  });
}

/** Wilson's interval for a proportion.
 * @param {number} share
 * @param {number} rows
 * @param {number} z
 * @returns {[number, number]} */
export function wilson(share, rows, z) {
  const shrink = 1 + (z * z) / rows;
  const middle = (share + (z * z) / (2 * rows)) / shrink;
  const half = (z / shrink) * Math.sqrt((share * (1 - share)) / rows + (z * z) / (4 * rows * rows));
  return [Math.min(share, Math.max(0, middle - half)), Math.max(share, Math.min(1, middle + half))];
}

/** Groups, calibrated lines, trivial points, and where calibrated scores cost the target.
 *
 * Calibrated scores of base rate mu are s (mu, 1 - mu), from perfect, s = 0, to trivial, s = 1,
 * and cost s times the trivial cost.
 * @param {Tally} tally
 * @param {Cost} cost
 * @param {number} target
 * @returns {Plane} */
export function plane(tally, cost, target) {
  const groups = tally.groups.map((group, place) => {
    const sums = at(tally.totals, place);
    const mu = baseRate(sums);
    const trivial_cost = trivialCostOf(sums, group, cost);
    return {
      group,
      name: at(tally.names, place),
      base_rate: mu,
      cost: costOf(sums, group, cost),
      trivial_cost,
      point: { x: generalizedFpr(sums), y: generalizedFnr(sums) },
      trivial: onLine(mu, 1),
      line: [onLine(mu, 0), onLine(mu, 1)],
      goal: target <= trivial_cost ? onLine(mu, target / trivial_cost) : null,
    };
  });
  const diagonal = [{ x: 0, y: 1 }, { x: 1, y: 0 }];
  return { groups, diagonal, target, level: isPerGroup(cost) ? [] : levelCurve(cost, target) };
}

/** @param {number} mu
 * @param {number} share
 * @returns {Point} */
function onLine(mu, share) {
  return { x: share * mu, y: share * (1 - mu) };
}

/** The points of calibrated lines that cost the target, by base rate.
 * @param {Cost} cost
 * @param {number} target
 * @returns {Point[]} */
export function levelCurve(cost, target) {
  /** @param {number} mu */
  const trivial = (mu) => {
    const [a, b] = coefficients(cost, "all", mu);
    return a * mu + b * (1 - mu);
  };
  const range = reachable(cost, target);
  if (!range || !(target > 0)) return [];
  const [low, high] = range;
  return Array.from({ length: STEPS + 1 }, (_, i) => {
    const mu = i === STEPS ? high : low + ((high - low) * i) / STEPS;
    // At the ends rounding may leave the trivial score a hair too cheap.
    return onLine(mu, Math.min(1, target / trivial(mu)));
  });
}

/** The base rates whose trivial score costs at least the target; null if there are none.
 *
 * The trivial cost is (fp + fn) mu (1 - mu) if weighted, and fp mu + fn (1 - mu) if plain.
 * @param {Cost} cost
 * @param {number} target
 * @returns {[number, number] | null} */
function reachable(cost, target) {
  const [ofOne, ofZero] = [coefficients(cost, "all", 1), coefficients(cost, "all", 0)];
  if (cost.kind === "weighted") {
    const root = Math.sqrt(1 - (4 * target) / (ofZero[0] + ofOne[1]));
    return Number.isNaN(root) ? null : [(1 - root) / 2, (1 + root) / 2];
  }
  const [fp, fn] = ofOne;
  if (target > Math.max(fp, fn)) return null;
  if (target <= Math.min(fp, fn)) return [0, 1];
  const end = (target - fn) / (fp - fn);
  return fp > fn ? [end, 1] : [0, end];
}
