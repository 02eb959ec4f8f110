/** @file The rows of a coarsened group: from a goal to pools, and from pools to intervals. */

import { at, fixed4, justBelow, leastBy, percent, placeAfter, sum } from "./numbers.js";
import { firstBin, weightOf } from "./tally.js";
import { coefficients } from "./costs.js";
import { baseRate, costOf, levelsOf } from "./measures.js";
import { evenPools, fewestPools, information, joined, narrowPools, settle } from "./pools.js";
import { INFORMATION_SLACK, meet, moveEdge, plainPiece } from "./edges.js";

/** @import {Tally} from "./tally.js" */
/** @import {Cost} from "./costs.js" */
/** @import {Level} from "./measures.js" */
/** @import {Pool, Sides} from "./pools.js" */
/** @import {Piece} from "./edges.js" */
/** @import {Row} from "./rules.js" */

/** A group that may be coarsened; its pools cost factor * (base_rate - information / weight).
 * @typedef {object} Candidate
 * @property {number} place
 * @property {number} cost what its errors cost at present
 * @property {Sides} sides its finest pools
 * @property {number} factor
 * @property {number} base_rate
 * @property {number} weight
 * @property {number} limit the largest cost that leaves every decision alone */

/** How far rounding may carry a value over a threshold. */
const ROUNDING = 1e-12;

/** The groups that cost less than a bound, with the finest pools that they can have.
 * @param {Tally} tally
 * @param {Cost} cost
 * @param {number[]} thresholds
 * @param {number} below
 * @returns {Candidate[]} */
export function candidates(tally, cost, thresholds, below) {
  return tally.groups.flatMap((group, place) => {
    const sums = at(tally.totals, place);
    const own = costOf(sums, group, cost);
    if (!(own < below)) return [];
    const mu = baseRate(sums);
    const [a, b] = coefficients(cost, group, mu);
    const bins = levelsOf(tally, place).map(({ w, wy, position, first, end }) => {
      return { w, y: wy, low: position, high: position, first, last: end - 1 };
    });
    const sides = settle(bins, thresholds);
    const factor = a / (1 - mu) + b / mu;
    const weight = weightOf(sums);
    const found = { place, cost: own, sides, factor, base_rate: mu, weight, limit: own };
    if (!sides.dropped.length) found.limit = Math.max(own, costOfPools(found, fewestPools(sides)));
    return [found];
  });
}

/** What the errors cost when each pool has one score.
 * @param {Candidate} found
 * @param {Pool[]} pools
 * @returns {number} */
function costOfPools(found, pools) {
  return found.factor * (found.base_rate - information(pools) / found.weight);
}

/** The rows that raise a group's cost to the goal, and what to say about them.
 * @param {Candidate} found
 * @param {number} goal
 * @param {Tally} tally
 * @param {number[]} thresholds
 * @returns {{rows: Row[], note: string}} */
export function repaired(found, goal, tally, thresholds) {
  const levels = levelsOf(tally, found.place);
  const { rows, about } = rowsFor(found, goal, tally, thresholds, levels);
  const values = new Set(rows.map((row) => row.value));
  const decisions = decisionsChanged(levels, rows, thresholds);
  const limit = `Costs up to ${fixed4(found.limit)} leave every decision alone`;
  const here = decisions ? `; here ${percent(decisions)} of decisions change.` : ", as here.";
  const note =
    `${at(tally.names, found.place)} has ${values.size} pools, and no score changes by more ` +
    `than ${fixed4(largestChange(levels, rows))}. ${about}${thresholds.length ? limit + here : ""}`;
  return { rows, note: note.trim() };
}

/** @param {Candidate} found
 * @param {number} goal
 * @param {Tally} tally
 * @param {number[]} thresholds
 * @param {Level[]} levels
 * @returns {{rows: Row[], about: string}} */
function rowsFor(found, goal, tally, thresholds, levels) {
  const { sides, factor } = found;
  const target = found.weight * (found.base_rate - goal / factor);
  const finest = costOfPools(found, sides.pools);
  if (finest > goal + factor * INFORMATION_SLACK) return mixedRows(found, goal, tally, finest);
  const fewest = fewestPools(sides);
  if (goal <= costOfPools(found, fewest) + ROUNDING) {
    const even = meet(evenPools(sides, target), sides.units, target);
    // One pool per side can be split down to the finest pools, so this never fails.
    const pieces = even ?? meet(fewest, sides.units, target) ?? sides.pools.map(plainPiece);
    return { rows: intervals(found, pieces, tally, sides.thresholds), about: "" };
  }
  const ways = crossings(found, fewest, target).map((pieces) => intervals(found, pieces, tally));
  return { rows: leastBy(ways, (rows) => decisionsChanged(levels, rows, thresholds)), about: "" };
}

/** Rows for a group whose calibrated pools all cost too much: only a share gets its pool's value.
 * @param {Candidate} found
 * @param {number} goal
 * @param {Tally} tally
 * @param {number} finest
 * @returns {{rows: Row[], about: string}} */
function mixedRows(found, goal, tally, finest) {
  // The finest pools would follow every accident of the labels.
  const narrow = narrowPools(found.sides);
  const share = (goal - found.cost) / (costOfPools(found, narrow) - found.cost);
  const rows = intervals(found, narrow.map(plainPiece), tally, found.sides.thresholds, share);
  const about =
    `Calibrated pools of its scores cost at least ${fixed4(finest)}, more than the goal, so ` +
    `only ${percent(share)} of its people get their pool's value; the others keep scores that ` +
    "are not calibrated. ";
  return { rows, about };
}

/** Give up thresholds until the information is the target; the last edge can move two ways.
 * @param {Candidate} found
 * @param {Pool[]} fewest
 * @param {number} target
 * @returns {Piece[][]} */
function crossings(found, fewest, target) {
  let pools = fewest;
  while (pools.length > 1) {
    const current = pools;
    // The side with the fewest people is given up first.
    const place = leastBy([...current.keys()].slice(0, -1), (i) =>
      Math.min(at(current, i).w, at(current, i + 1).w),
    );
    const [low, high] = [at(current, place), at(current, place + 1)];
    const [before, after] = [current.slice(0, place), current.slice(place + 2)];
    const merged = [...before, joined([low, high]), ...after];
    const keep = target - information(merged);
    if (keep > INFORMATION_SLACK * found.weight) {
      return [true, false].map((down) => [
        ...before.map(plainPiece),
        ...moveEdge(low, high, found.sides.units, keep, down),
        ...after.map(plainPiece),
      ]);
    }
    pools = merged;
  }
  return [pools.map(plainPiece)];
}

/** Intervals without holes, but for sides on which the group has nobody.
 * @param {Candidate} found
 * @param {Piece[]} pieces
 * @param {Tally} tally
 * @param {number[]} [kept] the thresholds that no value crosses, not even by rounding
 * @param {number} [probability]
 * @returns {Row[]} */
function intervals(found, pieces, tally, kept = [], probability = 1) {
  const { cuts } = tally;
  const size = cuts.length - 1;
  const walls = [0, ...found.sides.thresholds.map((t) => firstBin(cuts, t)), size];
  const ends = [-1, ...pieces.map((piece) => piece.last)];
  const firsts = [...pieces.map((piece) => piece.first), size];
  return pieces.flatMap((piece, i) => {
    const lo = at(cuts, between(at(ends, i) + 1, at(firsts, i), walls)[1]);
    const hi = at(cuts, between(at(ends, i + 1) + 1, at(firsts, i + 1), walls)[0]);
    return piece.outcomes.map(([value, share]) => ({
      group: at(tally.groups, found.place),
      lo,
      hi,
      action: /** @type {const} */ ("set"),
      value: onItsSide(value, lo, hi, kept),
      probability: share * probability,
    }));
  });
}

/** Where one piece ends and the next begins: at walls if there are any, else in the middle.
 * @param {number} low
 * @param {number} high
 * @param {number[]} walls
 * @returns {[number, number]} */
function between(low, high, walls) {
  const found = walls.filter((wall) => low <= wall && wall <= high);
  if (found.length) return [at(found, 0), at(found, -1)];
  const middle = Math.floor((low + high) / 2);
  return [middle, middle];
}

/** A value that rounding may have carried over a threshold, back on the side of its scores.
 * @param {number} value
 * @param {number} lo
 * @param {number} hi
 * @param {number[]} thresholds
 * @returns {number} */
function onItsSide(value, lo, hi, thresholds) {
  for (const t of thresholds) {
    if (lo >= t && t > value && value > t - ROUNDING) return t;
    if (hi <= t && t <= value && value < t + ROUNDING) return justBelow(t);
  }
  return value;
}

/** @param {Level} level
 * @param {Row} row
 * @returns {boolean} */
function isTouched({ position }, { lo, hi }) {
  return position >= lo && (position < hi || hi === 1);
}

/** How far a score moves at most; a bin's scores are taken at their mean.
 * @param {Level[]} levels
 * @param {Row[]} rows
 * @returns {number} */
function largestChange(levels, rows) {
  const changes = rows.flatMap((row) =>
    levels.flatMap((l) => (isTouched(l, row) ? [Math.abs(l.position - (row.value ?? 0))] : [])),
  );
  return Math.max(...changes);
}

/** The share of people who end up on another side of a threshold.
 * @param {Level[]} levels
 * @param {Row[]} rows
 * @param {number[]} thresholds
 * @returns {number} */
function decisionsChanged(levels, rows, thresholds) {
  const moved = rows.map((row) => {
    const side = placeAfter(thresholds, row.value ?? 0);
    const others = levels.filter(
      (level) => isTouched(level, row) && placeAfter(thresholds, level.position) !== side,
    );
    return row.probability * sum(others.map((level) => level.w));
  });
  return sum(moved) / sum(levels.map((level) => level.w));
}
