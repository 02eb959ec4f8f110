/** @file Meeting a target exactly: one edge between two pools is moved, into a bin if need be. */

import { at, exactSum, leastBy } from "./numbers.js";
import { information, joined, onSide, rising, unitsOf, valueOf } from "./pools.js";

/** @import {Pool} from "./pools.js" */

/** Neighbouring bins whose scores have the same outcomes: [value, probability] pairs.
 * @typedef {{first: number, last: number, outcomes: [number, number][], low: number,
 *   high: number}} Piece */

/** What a pool may be taken apart into, the units, and what each cut is worth.
 * @typedef {{pools: Pool[], units: Pool[], worths: number[]}} Parts */

/** A weight and that of its positives.
 * @typedef {{w: number, y: number}} Weights */

/** Information per person that does not count: it moves a cost by less than rounding shows. */
export const INFORMATION_SLACK = 1e-14;

/** As many as a double in [0, 1] has digits, and some more. */
const HALVINGS = 60;

/** How many places for a new edge are tried. */
const TRIES = 32;

/** A pool without a coin.
 * @param {Pool} pool
 * @returns {Piece} */
export function plainPiece(pool) {
  const { first, last, low, high } = pool;
  return { first, last, outcomes: [[valueOf(pool), 1]], low, high };
}

/** How far a score moves at most.
 * @param {Piece} piece
 * @returns {number} */
function changeOf({ outcomes, low, high }) {
  return Math.max(...outcomes.map(([value]) => Math.max(value - low, high - value)));
}

/** Split one of the pools so that the information is exactly the target.
 *
 * Where no single new edge is worth enough, the best is taken and another is looked for.  Of
 * several that are, one that changes scores least at most is taken.  Null when pools cannot be
 * split as far as that with values that rise.
 * @param {Pool[]} pools
 * @param {Pool[]} units
 * @param {number} target
 * @returns {Piece[] | null} */
export function meet(pools, units, target) {
  const chosen = [...pools];
  for (;;) {
    const need = target - information(chosen);
    if (need <= INFORMATION_SLACK * exactSum(chosen.map((pool) => pool.w))) {
      return chosen.map(plainPiece);
    }
    const parts = chosen.map((_, place) => partsOf(chosen, place, units));
    const cuts = parts.flatMap(({ worths }, place) =>
      worths.map((worth, cut) => ({ worth, place, cut })),
    );
    cuts.sort((a, b) => a.worth - b.worth || a.place - b.place || a.cut - b.cut);
    const enough = cuts.filter((cut) => cut.worth >= need).slice(0, TRIES);
    if (enough.length) return withEdge(chosen, parts, enough, need);
    const best = cuts.at(-1);
    if (!best) return null;
    chosen.splice(best.place, 1, ...splitAt(at(parts, best.place), best.cut));
  }
}

/** The pools with one more edge, the best of those that are worth enough.
 * @param {Pool[]} chosen
 * @param {Parts[]} parts
 * @param {{place: number, cut: number}[]} enough
 * @param {number} need
 * @returns {Piece[]} */
function withEdge(chosen, parts, enough, need) {
  const tries = enough.flatMap(({ place, cut }) =>
    [true, false].map((down) => {
      const [low, high] = splitAt(at(parts, place), cut);
      return { place, pieces: moveEdge(low, high, at(parts, place).units, need, down) };
    }),
  );
  const { place, pieces } = leastBy(tries, (found) => Math.max(...found.pieces.map(changeOf)));
  const [before, after] = [chosen.slice(0, place), chosen.slice(place + 1)];
  return [...before.map(plainPiece), ...pieces, ...after.map(plainPiece)];
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
 * @param {Pool[]} units
 * @returns {Parts} */
function partsOf(pools, place, units) {
  const [before, after] = [pools[place - 1], pools[place + 1]];
  const bins = inside(units, at(pools, place));
  const { found, fixed } = onSide(
    rising(bins),
    before ? valueOf(before) : -Infinity,
    after ? valueOf(after) : Infinity,
  );
  const low = runningSums(found);
  const high = runningSums([...found].reverse()).reverse();
  const worths = low.slice(1, -1).map((part, i) => Math.abs(signedWorth(part, at(high, i + 1))));
  return { pools: found, units: unitsOf(bins, fixed), worths };
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

/** @param {Pool[]} parts
 * @param {Pool} pool
 * @returns {Pool[]} */
function inside(parts, pool) {
  return parts.filter((part) => part.first >= pool.first && part.first <= pool.last);
}

/** Move the edge of two pools until telling them apart is worth just so much information.
 *
 * The edge wanders down (or up) until one pool is used up; on the way what it is worth falls to 0.
 * The first place where it is worth `keep` lies inside a unit as a rule, a single bin, whose
 * people are then divided by the coin.
 * @param {Pool} low
 * @param {Pool} high
 * @param {Pool[]} units
 * @param {number} keep
 * @param {boolean} down
 * @returns {Piece[]} */
export function moveEdge(low, high, units, keep, down) {
  const [giver, taker] = down ? [low, high] : [high, low];
  const row = inside(units, giver);
  if (down) row.reverse();
  // Added up from either end, so that nothing is lost to subtraction.
  const left = runningSums([...row].reverse()).reverse();
  const taken = runningSums(row).map((part) => ({ w: taker.w + part.w, y: taker.y + part.y }));
  const sign = down ? 1 : -1;
  const worths = left.map((part, i) => sign * signedWorth(part, at(taken, i)));
  const place = worths.slice(1).findIndex((worth) => worth <= keep);
  const unit = at(row, place);
  /** @param {number} share
   * @returns {[Weights, Weights]} */
  const divided = (share) => [
    plusShare(at(left, place + 1), unit, 1 - share),
    plusShare(at(taken, place), unit, share),
  ];
  const share = rootOf((tried) => sign * signedWorth(...divided(tried)) - keep);
  const [stays, grown] = divided(share);
  const [kept, moved] = [stays.y / stays.w, grown.y / grown.w];
  /** @type {[number, number][]} */
  const outcomes = stays.w > 0 ? [[kept, 1 - share], [moved, share]] : [[moved, share]];
  const rest = row.slice(place + 1);
  const pieces = [
    pieceOf([taker, ...row.slice(0, place)], [[moved, 1]]),
    pieceOf([unit], outcomes.filter(([, probability]) => probability > 0)),
    ...(rest.length ? [pieceOf(rest, [[kept, 1]])] : []),
  ];
  return down ? pieces.reverse() : pieces;
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

/** Where a surplus on [0, 1] turns from positive to negative, to the last digit.
 * @param {(share: number) => number} surplus
 * @returns {number} */
function rootOf(surplus) {
  let [low, high] = [0, 1];
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    if (surplus(middle) > 0) low = middle;
    else high = middle;
  }
  return high;
}

/** @param {Pool[]} parts
 * @param {[number, number][]} outcomes
 * @returns {Piece} */
function pieceOf(parts, outcomes) {
  const ordered = [...parts].sort((a, b) => a.first - b.first);
  const [low, high] = [at(ordered, 0), at(ordered, -1)];
  return { first: low.first, last: high.last, outcomes, low: low.low, high: high.high };
}
