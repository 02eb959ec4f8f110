/** @file The rows of a coarsened group: from a goal to pools, and from pools to intervals. */

import { at, exactSum, fixed4, justBelow, leastBy, percent, placeAfter, sum } from "./numbers.js";
import { firstBin, weightOf } from "./tally.js";
import { coefficients } from "./costs.js";
import { baseRate, costOf, levelsOf } from "./measures.js";
import { NARROW, evenPools, fewestPools, information, joined } from "./pools.js";
import { narrowPools, settle, valueOf } from "./pools.js";
import { INFORMATION_SLACK, ROUNDING, inside, meet, meetFromFinest } from "./edges.js";
import { movedEdges, plainPiece, plainPieces } from "./edges.js";

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
 * @property {number} a what the generalized rates are multiplied with
 * @property {number} b
 * @property {number} factor
 * @property {number} base_rate
 * @property {number} weight
 * @property {number} limit the largest cost that leaves every decision alone */

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
    const found = { place, cost: own, sides, a, b, factor, base_rate: mu, weight, limit: own };
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

/** What people who get this value add to the cost, up to the constant b.
 * @param {Candidate} found
 * @param {Pool} pool
 * @param {number} value
 * @returns {number} */
function added({ a, b, base_rate: mu, weight }, { w, y }, value) {
  return (((a * (w - y)) / (1 - mu) - (b * y) / mu) / weight) * value;
}

/** The rows that raise a group's cost to the goal, and what to say about them.
 *
 * If no pools that randomize a single bin have this cost, the next lower one that some have.
 * @param {Candidate} found
 * @param {number} goal
 * @param {Tally} tally
 * @param {number[]} thresholds
 * @param {boolean} mayCross
 * @returns {{rows: Row[], note: string} | {lower: number}} */
export function repaired(found, goal, tally, thresholds, mayCross) {
  const levels = levelsOf(tally, found.place);
  const made = waysFor(found, goal, tally, mayCross);
  if ("lower" in made) return made;
  const rows = leastBy(made.ways, (way) => decisionsChanged(levels, way, thresholds));
  const values = new Set(rows.map((row) => row.value));
  const decisions = decisionsChanged(levels, rows, thresholds);
  const limit = `Costs up to ${fixed4(found.limit)} leave every decision alone`;
  const here = decisions ? `; here ${percent(decisions)} of decisions change.` : ", as here.";
  const note =
    `${at(tally.names, found.place)} has ${values.size} pools, and no score changes by more ` +
    `than ${fixed4(largestChange(levels, rows))}. ${made.about}` +
    (thresholds.length ? limit + here : "");
  return { rows, note: note.trim() };
}

/** @param {Candidate} found
 * @param {number} goal
 * @param {Tally} tally
 * @param {boolean} mayCross
 * @returns {{ways: Row[][], about: string} | {lower: number}} */
function waysFor(found, goal, tally, mayCross) {
  const { sides, factor } = found;
  const target = found.weight * (found.base_rate - goal / factor);
  if (costOfPools(found, sides.pools) > goal + factor * INFORMATION_SLACK) {
    const { pieces, about } = uncalibrated(found, goal, tally);
    return { ways: [intervals(found, pieces, tally, sides.thresholds)], about };
  }
  const fewest = fewestPools(sides);
  if (goal <= costOfPools(found, fewest) + ROUNDING) {
    const easy = meet(evenPools(sides, target), sides, target) ?? meet(fewest, sides, target);
    const { pieces, pools } = easy ? { pieces: easy, pools: [] } : meetFromFinest(sides, target);
    if (pieces) return { ways: [intervals(found, pieces, tally, sides.thresholds)], about: "" };
    if (!mayCross) return { lower: costOfPools(found, pools) };
  } else {
    const across = crossings(found, fewest, target);
    if (across.length) {
      return { ways: across.map((pieces) => intervals(found, pieces, tally)), about: "" };
    }
  }
  // Without thresholds every cost can be met.
  const { pieces, pools } = meetFromFinest(settle(sides.bins, []), target);
  return { ways: [intervals(found, pieces ?? plainPieces(pools), tally)], about: "" };
}

/** Pools for scores that cost less than calibrated pools do, and what to say about them.
 *
 * A cost is linear in the scores, so values between the mean score of a pool and its share of
 * positives have any cost between the two.
 * @param {Candidate} found
 * @param {number} goal
 * @param {Tally} tally
 * @returns {{pieces: Piece[], about: string}} */
function uncalibrated(found, goal, tally) {
  const finest = costOfPools(found, found.sides.pools);
  const why = `Its finest calibrated pools cost ${fixed4(finest)}, more than the goal, so`;
  // The finest pools would follow every accident of the labels.
  for (const width of [NARROW, NARROW / 4, NARROW / 16]) {
    const pools = narrowPools(found.sides, width);
    const means = pools.map((pool) => poolScore(found.sides.bins, pool));
    const low = found.b + exactSum(pools.map((pool, i) => added(found, pool, at(means, i))));
    if (low > goal) continue;
    const share = (goal - low) / (costOfPools(found, pools) - low);
    const pieces = pools.map((pool, i) => {
      const mean = at(means, i);
      return plainPiece(pool, mean + share * (valueOf(pool) - mean));
    });
    const about =
      `${why} its values lie ${percent(share)} of the way from the mean score of a pool to the ` +
      "share of positives and are not calibrated. ";
    return { pieces, about };
  }
  const about =
    `${why} only its lower scores get their pool's value; the others stay and are not ` +
    "calibrated. ";
  return { pieces: upTo(found, narrowPools(found.sides), goal, tally), about };
}

/** @param {Pool[]} bins
 * @param {Pool} pool
 * @returns {number} */
function poolScore(bins, pool) {
  return exactSum(inside(bins, pool).map(({ w, low }) => w * low)) / pool.w;
}

/** Give bins their pool's value, from the lowest up, until the cost is the goal.
 * @param {Candidate} found
 * @param {Pool[]} pools
 * @param {number} goal
 * @param {Tally} tally
 * @returns {Piece[]} */
function upTo(found, pools, goal, tally) {
  const { bins } = found.sides;
  const values = pools.flatMap((pool) => inside(bins, pool).map(() => valueOf(pool)));
  const present = presentOf(found, tally);
  const changes = bins.map((bin, i) => added(found, bin, at(values, i)) - at(present, i));
  const need = goal - found.cost;
  let [place, reached] = [0, at(changes, 0)];
  while (reached < need) reached += at(changes, ++place);
  const share = 1 - (reached - need) / at(changes, place);
  const before = pools.flatMap((pool) => {
    const own = inside(bins.slice(0, place), pool);
    return own.length ? [plainPiece(joined(own), valueOf(pool))] : [];
  });
  const rest = bins.slice(place + 1);
  return [
    ...before,
    { ...plainPiece(at(bins, place)), outcomes: [[at(values, place), share]] },
    ...(rest.length ? [{ ...plainPiece(joined(rest)), outcomes: [] }] : []),
  ];
}

/** What the scores of each bin add to the cost at present, up to the constant b.
 * @param {Candidate} found
 * @param {Tally} tally
 * @returns {number[]} */
function presentOf({ place, a, b, base_rate: mu, weight, sides }, tally) {
  /** @type {Map<number, number>} */
  const sums = new Map();
  for (const { group, label, bin, wh } of tally.cells) {
    if (group !== place) continue;
    sums.set(bin, (sums.get(bin) ?? 0) + (label ? -b / mu : a / (1 - mu)) * wh);
  }
  const ordered = [...sums.entries()].sort(([one], [other]) => one - other);
  return ordered.slice(0, sides.bins.length).map(([, total]) => total / weight);
}

/** Give up thresholds until the information is the target; the last edge can move two ways.
 *
 * Empty if the pools beside that edge are in its way.
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
      const [below, above] = [before.at(-1), after[0]];
      /** @type {[number, number]} */
      const limits = [below ? valueOf(below) : -Infinity, above ? valueOf(above) : Infinity];
      return movedEdges(low, high, found.sides.bins, keep, limits).map((way) => [
        ...plainPieces(before),
        ...way,
        ...plainPieces(after),
      ]);
    }
    pools = merged;
  }
  return [plainPieces(pools)];
}

/** Intervals without holes, but for sides on which the group has nobody.
 * @param {Candidate} found
 * @param {Piece[]} pieces
 * @param {Tally} tally
 * @param {number[]} [kept] the thresholds that no value crosses, not even by rounding
 * @returns {Row[]} */
function intervals(found, pieces, tally, kept = []) {
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
      probability: share,
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
