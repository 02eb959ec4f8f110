/** @file Pools of neighbouring scores of one group: how fine they may be, and which to take.
 *
 * A pool gets its share of positives as its score, so any set of pools is calibrated on the tally.
 * What it costs depends on its information alone, the sum over pools of w q^2. */

import { at, exactSum, leastBy, placeAfter } from "./numbers.js";

/** Neighbouring scores that become one value: weight, that of the positives, the mean scores of
 * the lowest and the highest bin, and these bins.
 * @typedef {{w: number, y: number, low: number, high: number, first: number, last: number}} Pool */

/** The finest pools of a group that leave it on its sides of the thresholds.
 * @typedef {object} Sides
 * @property {Pool[]} bins from low to high
 * @property {Pool[]} units what pools are made of: bins, some of them kept together
 * @property {Pool[]} pools the finest pools with rising values, each made of units
 * @property {number[]} thresholds no pool crosses one
 * @property {number[]} dropped thresholds that had to be given up */

/** How many parts of equal width are tried at most. */
const MOST_PARTS = 1024;

/** How wide a pool is at most that only takes miscalibration away. */
export const NARROW = 0.1;

/** The share of positives.
 * @param {Pool} pool
 * @returns {number} */
export function valueOf(pool) {
  return pool.y / pool.w;
}

/** What telling two neighbours apart is worth, as information.
 * @param {Pool} low
 * @param {Pool} high
 * @returns {number} */
export function worth(low, high) {
  return ((low.w * high.w) / (low.w + high.w)) * (valueOf(high) - valueOf(low)) ** 2;
}

/** One pool of neighbours.
 * @param {Pool[]} pools
 * @returns {Pool} */
export function joined(pools) {
  const [lowest, highest] = [at(pools, 0), at(pools, -1)];
  return {
    w: exactSum(pools.map((pool) => pool.w)),
    y: exactSum(pools.map((pool) => pool.y)),
    low: lowest.low,
    high: highest.high,
    first: lowest.first,
    last: highest.last,
  };
}

/** The sum of w q^2.
 * @param {Pool[]} pools
 * @returns {number} */
export function information(pools) {
  return exactSum(pools.map((pool) => pool.y * valueOf(pool)));
}

/** The finest pools whose values rise and stay on their side of every threshold.
 *
 * Where a whole side has a share of positives that belongs on another, the threshold between
 * them is dropped, and the pools settle again.
 * @param {Pool[]} bins
 * @param {number[]} thresholds
 * @returns {Sides} */
export function settle(bins, thresholds) {
  /** @type {number[]} */
  const dropped = [];
  let kept = thresholds;
  for (;;) {
    const found = settled(bins, kept);
    if (!("wrong" in found)) return { bins, ...found, thresholds: kept, dropped };
    dropped.push(found.wrong);
    kept = kept.filter((threshold) => threshold !== found.wrong);
  }
}

/** Units and pools between the thresholds, or the first threshold that is in the way.
 * @param {Pool[]} bins
 * @param {number[]} thresholds
 * @returns {{units: Pool[], pools: Pool[]} | {wrong: number}} */
function settled(bins, thresholds) {
  /** @type {Pool[]} */
  const units = [];
  /** @type {Pool[]} */
  const pools = [];
  for (const side of bySide(bins, thresholds)) {
    const place = placeAfter(thresholds, at(side, 0).low);
    const [lo = -Infinity, hi = Infinity] = [thresholds[place - 1], thresholds[place]];
    const { found, fixed } = onSide(rising(side), lo, hi);
    const value = valueOf(at(found, 0));
    if (value >= hi) return { wrong: hi };
    if (value < lo) return { wrong: lo };
    pools.push(...found);
    units.push(...unitsOf(side, fixed));
  }
  return { units, pools };
}

/** Where values of the pools from `start` to `stop` may lie: on their side, between the neighbours'.
 * @param {Sides} sides
 * @param {Pool[]} pools
 * @param {number} start
 * @param {number} stop
 * @returns {[number, number]} */
export function limitsOf({ thresholds }, pools, start, stop) {
  const place = placeAfter(thresholds, at(pools, start).low);
  const [lo = -Infinity, hi = Infinity] = [thresholds[place - 1], thresholds[place]];
  const [before, after] = [pools[start - 1], pools[stop]];
  return [
    before ? Math.max(lo, valueOf(before)) : lo,
    after ? Math.min(hi, valueOf(after)) : hi,
  ];
}

/** Whether two pools lie on the same side of every threshold.
 * @param {Sides} sides
 * @param {Pool} one
 * @param {Pool} other
 * @returns {boolean} */
export function areTogether({ thresholds }, one, other) {
  return placeAfter(thresholds, one.low) === placeAfter(thresholds, other.low);
}

/** The pools between one threshold and the next; no empty lists.
 * @param {Pool[]} pools
 * @param {number[]} thresholds
 * @returns {Pool[][]} */
function bySide(pools, thresholds) {
  /** @type {Pool[][]} */
  const sides = Array.from({ length: thresholds.length + 1 }, () => []);
  for (const pool of pools) at(sides, placeAfter(thresholds, pool.low)).push(pool);
  return sides.filter((side) => side.length);
}

/** Pool adjacent violators: the most pools whose values rise.
 * @param {Pool[]} bins
 * @returns {Pool[]} */
export function rising(bins) {
  /** @type {{w: number, y: number, start: number}[]} */
  const stack = [];
  for (const [start, { w, y }] of bins.entries()) {
    let top = { w, y, start };
    let below = stack.at(-1);
    // Cross products, so that equal shares are seen as equal.
    while (below && below.y * top.w >= top.y * below.w) {
      top = { w: below.w + top.w, y: below.y + top.y, start: below.start };
      stack.pop();
      below = stack.at(-1);
    }
    stack.push(top);
  }
  return stack.map(({ start }, i) => joined(bins.slice(start, stack[i + 1]?.start)));
}

/** Join the outermost pools until their values lie in [lo, hi); and say which had to be.
 * @param {Pool[]} pools
 * @param {number} lo
 * @param {number} hi
 * @returns {{found: Pool[], fixed: Pool[]}} */
export function onSide(pools, lo, hi) {
  const found = [...pools];
  let [isLowJoined, isHighJoined] = [false, false];
  while (found.length > 1 && valueOf(at(found, -1)) >= hi) {
    found.push(joined(found.splice(-2)));
    isHighJoined = true;
  }
  while (found.length > 1 && valueOf(at(found, 0)) < lo) {
    found.unshift(joined(found.splice(0, 2)));
    isLowJoined = true;
  }
  const fixed = [...found.slice(0, isLowJoined ? 1 : 0), ...(isHighJoined ? found.slice(-1) : [])];
  return { found, fixed };
}

/** The bins, but a fixed pool instead of its own: part of it may be on a wrong side.
 * @param {Pool[]} bins
 * @param {Pool[]} fixed
 * @returns {Pool[]} */
export function unitsOf(bins, fixed) {
  const free = bins.filter(({ first }) => !fixed.some((p) => p.first <= first && first <= p.last));
  return [...free, ...new Set(fixed)].sort((a, b) => a.first - b.first);
}

/** One pool per side: the least information that leaves every decision alone.
 * @param {Sides} sides
 * @returns {Pool[]} */
export function fewestPools(sides) {
  return bySide(sides.pools, sides.thresholds).map(joined);
}

/** Pools of equal width on each side, as narrow as the target's information allows.
 *
 * Time after time the side with the widest parts gets one part more; the last pools before there
 * is more information than the target are returned.
 * @param {Sides} sides
 * @param {number} target
 * @returns {Pool[]} */
export function evenPools(sides, target) {
  const lists = bySide(sides.units, sides.thresholds);
  const ranges = lists.map((side) => at(side, -1).high - at(side, 0).low);
  const parts = lists.map(() => 1);
  let pools = lists.map((side) => rising(equalParts(side, 1)));
  for (let i = 0; i < Math.min(sides.units.length, MOST_PARTS); i++) {
    const widest = leastBy([...lists.keys()], (side) => -at(ranges, side) / at(parts, side));
    const count = at(parts, widest) + 1;
    parts[widest] = count;
    const finer = [...pools];
    finer[widest] = rising(equalParts(at(lists, widest), count));
    if (information(finer.flat()) > target) break;
    pools = finer;
  }
  return pools.flat();
}

/** Pools of equal width on each side, none wider than this; joined where values fall.
 * @param {Sides} sides
 * @param {number} [width]
 * @returns {Pool[]} */
export function narrowPools(sides, width = NARROW) {
  return bySide(sides.units, sides.thresholds).flatMap((side) => {
    const range = at(side, -1).high - at(side, 0).low;
    return rising(equalParts(side, Math.max(1, Math.ceil(range / width - 1e-9))));
  });
}

/** The units of a side, joined where they lie in the same of so many equal parts.
 * @param {Pool[]} side
 * @param {number} count
 * @returns {Pool[]} */
function equalParts(side, count) {
  const low = at(side, 0).low;
  const width = (at(side, -1).high - low) / count || 1;
  const place = side.map((unit) => Math.min(Math.trunc((unit.low - low) / width), count - 1));
  const starts = [...side.keys()].filter((i) => i === 0 || at(place, i) > at(place, i - 1));
  return starts.map((start, i) => joined(side.slice(start, starts[i + 1])));
}
