/** @file What the charts show: reliability, mean scores of decisions, and the plane of the two generalized rates. */

import { sum } from "./numbers.js";
import { decides, firstBin } from "./tally.js";
import { levelsOf, pooledLevels } from "./measures.js";

/** @import {Tally} from "./tally.js" */

/** People with scores in [lo, hi), the last hi included; low and high are Wilson's interval of the
 * share of positives.
 * @typedef {{lo: number, hi: number, n: number, weight: number, mean_score: number, mean_label: number, low: number,
 *   high: number}} ReliabilityPoint */

/** A point in the plane: x is the generalized false-positive rate, y the false-negative one.
 * @typedef {{x: number, y: number}} Point */

/** The normal quantile of a 95 % interval. */
const Z95 = 1.959963984540054;

/** Into how many steps a level curve is divided. */
const STEPS = 200;

/** Mean label against mean score, over bins of equal width that hold anybody.
 *
 * With weights the number of rows is (sum w)^2 / sum w^2.
 * @param {Tally} tally @param {number} groupIndex @param {number} [bins]
 * @returns {ReliabilityPoint[]} */
export function reliability(tally, groupIndex, bins = 10) {
  return pooledLevels(levelsOf(tally, groupIndex), bins).map(({ bin, n, w, wy, wh, w2 }) => {
    const [low, high] = wilson(wy / w, (w * w) / w2, Z95);
    const [lo, hi] = [bin / bins, (bin + 1) / bins];
    return { lo, hi, n, weight: w, mean_score: wh / w, mean_label: wy / w, low, high };
  });
}

/** The mean scores of the people passed over and selected, which calibrated scores have as FOR and
 * PPV; NaN where there is nobody, or merged bins hide who they are.
 * @param {Tally} tally @param {number} threshold @param {number} group
 * @returns {{passed: number, selected: number}} */
export function scoresBySide(tally, threshold, group) {
  const first = firstBin(tally.cuts, threshold);
  const cells = decides(tally, threshold, group) ? tally.cells.filter((cell) => cell.group === group) : [];
  /** @param {boolean} isSelected */
  const mean = (isSelected) => {
    const side = cells.filter((cell) => cell.bin >= first === isSelected);
    return sum(side.map((cell) => cell.wh)) / sum(side.map((cell) => cell.w));
  };
  return { passed: mean(false), selected: mean(true) };
}

/** Wilson's interval for a proportion.
 * @param {number} share @param {number} rows @param {number} z @returns {[number, number]} */
function wilson(share, rows, z) {
  const shrink = 1 + (z * z) / rows;
  const middle = (share + (z * z) / (2 * rows)) / shrink;
  const half = (z / shrink) * Math.sqrt((share * (1 - share)) / rows + (z * z) / (4 * rows * rows));
  return [Math.min(share, Math.max(0, middle - half)), Math.max(share, Math.min(1, middle + half))];
}

/** Where calibrated scores of any base rate cost the target, per person.
 *
 * Those of base rate mu are s (mu, 1 - mu), from perfect, s = 0, to trivial, s = 1, and cost
 * s (fp + fn) mu (1 - mu).
 * @param {number} total fp + fn
 * @param {number} target @returns {Point[]} */
export function levelCurve(total, target) {
  const root = Math.sqrt(1 - (4 * target) / total);
  if (Number.isNaN(root) || !(target > 0)) return [];
  const [low, high] = [(1 - root) / 2, (1 + root) / 2];
  return Array.from({ length: STEPS + 1 }, (_, i) => {
    const mu = i === STEPS ? high : low + ((high - low) * i) / STEPS;
    // At the ends rounding may leave the trivial score a hair too cheap.
    const share = Math.min(1, target / (total * mu * (1 - mu)));
    return { x: share * mu, y: share * (1 - mu) };
  });
}
