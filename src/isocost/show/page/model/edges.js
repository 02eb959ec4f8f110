/** @file Meeting a target exactly: one edge between two pools is moved, into a bin if need be. */

import { at, exactSum, leastBy } from "./numbers.js";
import { areTogether, information, joined, limitsOf, onSide } from "./pools.js";
import { rising, valueOf, worth } from "./pools.js";

/** @import {Pool, Sides} from "./pools.js" */

/** Neighbouring bins whose scores have the same outcomes: [value, probability] pairs.
 * @typedef {{first: number, last: number, outcomes: [number, number][], low: number,
 *   high: number}} Piece */

/** What a pool may be taken apart into, where values may lie, and what each cut is worth.
 * @typedef {{pools: Pool[], limits: [number, number], worths: number[]}} Parts */

/** A weight and that of its positives.
 * @typedef {{w: number, y: number}} Weights */

/** Information per person that does not count: it moves a cost by less than rounding shows. */
export const INFORMATION_SLACK = 1e-14;

/** How far rounding may carry a value over a limit. */
export const ROUNDING = 1e-12;

/** As many as a double in [0, 1] has digits, and some more. */
const HALVINGS = 60;

/** How many places for a new edge are tried. */
const TRIES = 32;

/** A pool without a coin; its value is the share of positives unless another is given.
 * @param {Pool} pool
 * @param {number} [value]
 * @returns {Piece} */
export function plainPiece(pool, value = valueOf(pool)) {
  const { first, last, low, high } = pool;
  return { first, last, outcomes: [[value, 1]], low, high };
}

/** @param {Pool[]} pools
 * @returns {Piece[]} */
export function plainPieces(pools) {
  return pools.map((pool) => plainPiece(pool));
}

/** How far a score moves at most.
 * @param {Piece} piece
 * @returns {number} */
function changeOf({ outcomes, low, high }) {
  return Math.max(...outcomes.map(([value]) => Math.max(value - low, high - value)));
}

/** How far a score moves at most in any of the pieces.
 * @param {Piece[]} pieces
 * @returns {number} */
function largestChangeOf(pieces) {
  return Math.max(...pieces.map(changeOf));
}

/** Split one of the pools so that the information is exactly the target.
 *
 * Where no single new edge is worth enough, the best is taken and another is looked for.  Of
 * several that are, one that changes scores least at most is taken.  Null when pools cannot be
 * split as far as that with values that rise.
 * @param {Pool[]} pools
 * @param {Sides} sides
 * @param {number} target
 * @returns {Piece[] | null} */
export function meet(pools, sides, target) {
  const chosen = [...pools];
  for (;;) {
    const need = target - information(chosen);
    if (need <= INFORMATION_SLACK * exactSum(chosen.map((pool) => pool.w))) {
      return plainPieces(chosen);
    }
    const parts = chosen.map((_, place) => partsOf(chosen, place, sides));
    const cuts = parts.flatMap(({ worths }, place) =>
      worths.map((gain, cut) => ({ gain, place, cut })),
    );
    cuts.sort((a, b) => a.gain - b.gain || a.place - b.place || a.cut - b.cut);
    const tries = newEdges(parts, cuts.filter((cut) => cut.gain >= need), sides, need);
    if (tries.length) {
      const { place, pieces } = leastBy(tries, (found) => largestChangeOf(found.pieces));
      const [before, after] = [chosen.slice(0, place), chosen.slice(place + 1)];
      return [...plainPieces(before), ...pieces, ...plainPieces(after)];
    }
    const best = cuts.filter((cut) => cut.gain < need).at(-1);
    if (!best) return null;
    chosen.splice(best.place, 1, ...splitAt(at(parts, best.place), best.cut));
  }
}

/** Join the finest pools, neighbour by neighbour, until the information is the target.
 *
 * Null pieces when no way was found to meet the target by dividing the people of a single bin; the
 * pools are the last that had at least its information.
 * @param {Sides} sides
 * @param {number} target
 * @returns {{pieces: Piece[] | null, pools: Pool[]}} */
export function meetFromFinest(sides, target) {
  const pools = [...sides.pools];
  for (;;) {
    const spare = information(pools) - target;
    if (spare <= INFORMATION_SLACK * exactSum(pools.map((pool) => pool.w))) {
      return { pieces: plainPieces(pools), pools };
    }
    const pairs = pools.slice(1).flatMap((high, i) => {
      const low = at(pools, i);
      return areTogether(sides, low, high) ? [{ i, low, high, gain: worth(low, high) }] : [];
    });
    pairs.sort((a, b) => a.gain - b.gain);
    const least = pairs[0];
    if (!least || least.gain > spare) {
      return { pieces: joinedPartly(pools, pairs, sides, spare), pools };
    }
    pools.splice(least.i, 2, joined([least.low, least.high]));
  }
}

/** Pools of which two neighbours are joined in part, or joined and another split instead.
 * @param {Pool[]} pools
 * @param {{i: number, low: Pool, high: Pool, gain: number}[]} pairs
 * @param {Sides} sides
 * @param {number} spare
 * @returns {Piece[] | null} */
function joinedPartly(pools, pairs, sides, spare) {
  for (const { i, low, high, gain } of pairs) {
    const [before, after] = [pools.slice(0, i), pools.slice(i + 2)];
    const limits = limitsOf(sides, pools, i, i + 2);
    const ways = movedEdges(low, high, sides.bins, gain - spare, limits);
    if (ways.length) {
      return [...plainPieces(before), ...leastBy(ways, largestChangeOf), ...plainPieces(after)];
    }
    const target = information(pools) - spare;
    const found = meet([...before, joined([low, high]), ...after], sides, target);
    if (found) return found;
  }
  return null;
}

/** New edges that are worth what is needed; the first that can be had, and some more.
 * @param {Parts[]} parts
 * @param {{place: number, cut: number}[]} cuts
 * @param {Sides} sides
 * @param {number} need
 * @returns {{place: number, pieces: Piece[]}[]} */
function newEdges(parts, cuts, sides, need) {
  /** @type {{place: number, pieces: Piece[]}[]} */
  const found = [];
  for (const [tried, { place, cut }] of cuts.entries()) {
    if (found.length && tried >= TRIES) break;
    const { limits } = at(parts, place);
    const ways = movedEdges(...splitAt(at(parts, place), cut), sides.bins, need, limits);
    found.push(...ways.map((pieces) => ({ place, pieces })));
  }
  return found;
}

/** Two pools, the first with `cut + 1` of the parts.
 * @param {Parts} parts
 * @param {number} cut
 * @returns {[Pool, Pool]} */
function splitAt({ pools }, cut) {
  return [joined(pools.slice(0, cut + 1)), joined(pools.slice(cut + 1))];
}

/** The finest parts of a pool with which all values still rise.
 *
 * The values of its neighbours are to its parts what thresholds are to a side.
 * @param {Pool[]} pools
 * @param {number} place
 * @param {Sides} sides
 * @returns {Parts} */
function partsOf(pools, place, sides) {
  const limits = limitsOf(sides, pools, place, place + 1);
  const { found } = onSide(rising(inside(sides.units, at(pools, place))), ...limits);
  const low = runningSums(found);
  const high = runningSums([...found].reverse()).reverse();
  const worths = low.slice(1, -1).map((part, i) => Math.abs(signedWorth(part, at(high, i + 1))));
  return { pools: found, limits, worths };
}

/** The sums of the first 0, 1, 2 ... weights.
 * @param {Weights[]} parts
 * @returns {Weights[]} */
function runningSums(parts) {
  const sums = [{ w: 0, y: 0 }];
  for (const { w, y } of parts) {
    const last = at(sums, -1);
    sums.push({ w: last.w + w, y: last.y + y });
  }
  return sums;
}

/** Those of the parts that lie in a pool.
 * @param {Pool[]} parts
 * @param {Pool} pool
 * @returns {Pool[]} */
export function inside(parts, pool) {
  return parts.filter((part) => part.first >= pool.first && part.first <= pool.last);
}

/** The edge of two pools, moved down and up until they are worth just so much information.
 * @param {Pool} low
 * @param {Pool} high
 * @param {Pool[]} bins
 * @param {number} keep
 * @param {[number, number]} limits
 * @returns {Piece[][]} */
export function movedEdges(low, high, bins, keep, limits) {
  return [true, false].flatMap((down) => {
    const pieces = moveEdge(low, high, bins, keep, limits, down);
    return pieces ? [pieces] : [];
  });
}

/** Move the edge of two pools until telling them apart is worth just so much information.
 *
 * The edge moves down (or up) until one pool is used up; on the way what it is worth falls to 0.
 * The first place where it is worth `keep` and both values lie within the limits lies inside a bin
 * as a rule, whose people are then divided by the coin.  Null if there is no such place.
 * @param {Pool} low
 * @param {Pool} high
 * @param {Pool[]} bins
 * @param {number} keep
 * @param {[number, number]} limits
 * @param {boolean} down
 * @returns {Piece[] | null} */
function moveEdge(low, high, bins, keep, [least, most], down) {
  const [giver, taker] = down ? [low, high] : [high, low];
  const row = inside(bins, giver);
  if (down) row.reverse();
  // Added up from either end, so that nothing is lost to subtraction.
  const left = runningSums([...row].reverse()).reverse();
  const taken = runningSums(row).map((part) => ({ w: taker.w + part.w, y: taker.y + part.y }));
  const sign = down ? 1 : -1;
  for (const { place, span } of spansOf(left, taken, row, keep, sign)) {
    const bin = at(row, place);
    const around = { rest: at(left, place + 1), grown: at(taken, place) };
    const { share, kept, moved } = divide(around, bin, keep, sign, span);
    if (Math.min(kept, moved) < least - ROUNDING) continue;
    if (Math.max(kept, moved) >= most) continue;
    const rest = row.slice(place + 1);
    /** @type {[number, number][]} */
    const outcomes = [[kept, 1 - share], [moved, share]];
    const pieces = [
      pieceOf([taker, ...row.slice(0, place)], [[moved, 1]]),
      pieceOf([bin], outcomes.filter(([, probability]) => probability > 0)),
      ...(rest.length ? [pieceOf(rest, [[kept, 1]])] : []),
    ];
    return down ? pieces.reverse() : pieces;
  }
  return null;
}

/** The bins, and the spans of their shares, in which the worth comes to be `keep`.
 *
 * A span begins where there is more and ends where there is less.  The difference of worth and
 * `keep` is convex in the share, up to a positive factor: there may be less inside a bin though
 * there is more at both its ends.
 * @param {Weights[]} left
 * @param {Weights[]} taken
 * @param {Weights[]} row
 * @param {number} keep
 * @param {number} sign
 * @returns {{place: number, span: [number, number]}[]} */
function spansOf(left, taken, row, keep, sign) {
  const { w: whole, y: positives } = at(taken, -1);
  return row.flatMap((bin, place) => {
    const [giver, taker] = [at(left, place), at(taken, place)];
    const d = giver.y * whole - giver.w * positives;
    const step = bin.w * positives - bin.y * whole;
    const middle = (keep * whole * bin.w * (giver.w - taker.w)) / 2 - d * step;
    const lowest = middle / (step ** 2 + keep * whole * bin.w ** 2);
    const turn = Math.min(Math.max(lowest, 0), 1);
    const inner = signedWorth(plusShare(giver, bin, -turn), plusShare(taker, bin, turn));
    const last = signedWorth(at(left, place + 1), at(taken, place + 1));
    const isMoreFirst = place === 0 || sign * signedWorth(giver, taker) > keep;
    const isMoreInside = sign * inner > keep;
    const isMoreLast = sign * last > keep;
    /** @type {[number, number][]} */
    const spans = [];
    if (isMoreFirst && !isMoreInside) spans.push([0, turn]);
    else if (isMoreFirst && !isMoreLast) spans.push([turn, 1]);
    if (isMoreLast && !isMoreInside) spans.push([1, turn]);
    return spans.map((span) => ({ place, span }));
  });
}

/** The share of a bin that moves from the rest to the grown pool, and the values of both.
 * @param {{rest: Weights, grown: Weights}} around
 * @param {Weights} bin
 * @param {number} keep
 * @param {number} sign
 * @param {[number, number]} span
 * @returns {{share: number, kept: number, moved: number}} */
function divide({ rest, grown }, bin, keep, sign, span) {
  /** @param {number} share
   * @returns {[Weights, Weights]} */
  const divided = (share) => [plusShare(rest, bin, 1 - share), plusShare(grown, bin, share)];
  const share = rootOf((tried) => sign * signedWorth(...divided(tried)) - keep, span);
  const [stays, taken] = divided(share);
  const moved = taken.y / taken.w;
  return { share, kept: stays.w > 0 ? stays.y / stays.w : moved, moved };
}

/** @param {Weights} sums
 * @param {Weights} unit
 * @param {number} share
 * @returns {Weights} */
function plusShare(sums, unit, share) {
  return { w: sums.w + share * unit.w, y: sums.y + share * unit.y };
}

/** What telling apart is worth, with the sign of taker's value - giver's; 0 without a giver.
 * @param {Weights} giver
 * @param {Weights} taker
 * @returns {number} */
function signedWorth(giver, taker) {
  if (!(giver.w > 0)) return 0;
  const difference = taker.y / taker.w - giver.y / giver.w;
  return ((giver.w * taker.w) / (giver.w + taker.w)) * difference * Math.abs(difference);
}

/** Where a surplus turns from positive, at the start of a span, to negative, to the last digit.
 * @param {(share: number) => number} surplus
 * @param {[number, number]} span
 * @returns {number} */
function rootOf(surplus, [start, end]) {
  let [more, less] = [start, end];
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (more + less) / 2;
    if (surplus(middle) > 0) more = middle;
    else less = middle;
  }
  return less;
}

/** @param {Pool[]} parts
 * @param {[number, number][]} outcomes
 * @returns {Piece} */
function pieceOf(parts, outcomes) {
  const ordered = [...parts].sort((a, b) => a.first - b.first);
  const [low, high] = [at(ordered, 0), at(ordered, -1)];
  return { first: low.first, last: high.last, outcomes, low: low.low, high: high.high };
}
