/** @file The best rates that all groups can reach, and the probabilities that lead there.
 *
 * Each group can reach the rates of a parallelogram, the image of its two probabilities in the
 * unit square.  What all groups can reach is where the parallelograms meet, a convex polygon, and
 * the best point is one of its corners: where two sides of parallelograms cross. */

import { sum } from "./numbers.js";

/** @typedef {[number, number]} Pair */

/** A line a x + b y = c in the plane of the two rates.
 * @typedef {{a: number, b: number, c: number}} Line */

/** What turning scores round does to a group; `up` is for scores from the threshold, `down` below.
 * @typedef {object} Turning
 * @property {Pair} now the rates to be made equal
 * @property {Pair} up how much they change when everybody there is turned round
 * @property {Pair} down
 * @property {Pair} loss how much FPR + FNR changes, for up and down
 * @property {Pair} shares how many people there are, for up and down
 * @property {Pair} most the highest probabilities: 0 where turning changes nothing */

/** Probabilities of one group, and what they come to.
 * @typedef {{flips: Pair, loss: number, turned: number}} Choice */

/** Below this a probability, or an effect on a rate, is rounding. */
export const NOISE = 1e-14;

/** How far a probability may lie outside [0, 1] for rounding; and losses that count as equal. */
const ROOM = 1e-9;

/** How nearly parallel the two effects may be before they count as parallel. */
const PARALLEL = 1e-11;

/** The probabilities of each group at the best common rates.
 * @param {Turning[]} turnings
 * @returns {Pair[]} */
export function bestFlips(turnings) {
  const lines = turnings.flatMap(sidesOf);
  /** @type {{choices: Choice[], loss: number, turned: number} | null} */
  let best = null;
  for (const [i, one] of lines.entries()) {
    for (const other of lines.slice(i + 1)) {
      const point = crossing(one, other);
      const choices = point && choicesAt(turnings, point);
      if (!choices) continue;
      const loss = sum(choices.map((choice) => choice.loss));
      const turned = sum(choices.map((choice) => choice.turned));
      const isBetter =
        !best || loss < best.loss - ROOM || (loss <= best.loss + ROOM && turned < best.turned);
      if (isBetter) best = { choices, loss, turned };
    }
  }
  if (!best) throw new Error("Equalized odds has a solution, and none was found.");
  return best.choices.map((choice) => choice.flips);
}

/** The lines on which the best point may lie: sides of the parallelogram.
 *
 * Where it is flat, the line that it is on, and lines across it through its corners: along
 * it the loss has a kink there.
 * @param {Turning} turning
 * @returns {Line[]} */
function sidesOf(turning) {
  const { now, up, down, most } = turning;
  const corners = [0, most[0]].flatMap((p) => [0, most[1]].map((q) => ratesAt(turning, p, q)));
  if (!isFlat(turning)) {
    return [0, 1].flatMap((p) => [
      lineThrough(ratesAt(turning, p, 0), down),
      lineThrough(ratesAt(turning, 0, p), up),
    ]);
  }
  const along = directionOf(turning);
  /** @type {Pair} */
  const across = [-along[1], along[0]];
  return [lineThrough(now, along), ...corners.map((corner) => lineThrough(corner, across))];
}

/** @param {Turning} turning
 * @param {number} p
 * @param {number} q
 * @returns {Pair} */
function ratesAt({ now, up, down }, p, q) {
  return [now[0] + p * up[0] + q * down[0], now[1] + p * up[1] + q * down[1]];
}

/** Whether a group can reach no more than a line, or a point.
 * @param {Turning} turning
 * @returns {boolean} */
function isFlat({ up, down, most }) {
  const area = Math.abs(up[0] * down[1] - up[1] * down[0]);
  return most[0] * most[1] === 0 || area <= PARALLEL * Math.hypot(...up) * Math.hypot(...down);
}

/** The direction of the longer effect, of length 1; any where there is none.
 * @param {Turning} turning
 * @returns {Pair} */
function directionOf({ up, down }) {
  const [x, y] = Math.hypot(...up) >= Math.hypot(...down) ? up : down;
  const length = Math.hypot(x, y);
  return length ? [x / length, y / length] : [1, 0];
}

/** @param {Pair} point
 * @param {Pair} direction
 * @returns {Line} */
function lineThrough(point, direction) {
  const length = Math.hypot(...direction) || 1;
  const [a, b] = [-direction[1] / length, direction[0] / length];
  return { a, b, c: a * point[0] + b * point[1] };
}

/** @param {Line} one
 * @param {Line} other
 * @returns {Pair | null} */
function crossing(one, other) {
  const area = one.a * other.b - one.b * other.a;
  if (Math.abs(area) < PARALLEL) return null;
  return [
    (one.c * other.b - one.b * other.c) / area,
    (one.a * other.c - one.c * other.a) / area,
  ];
}

/** The best probabilities of each group that reach a point; null if a group cannot.
 * @param {Turning[]} turnings
 * @param {Pair} point
 * @returns {Choice[] | null} */
function choicesAt(turnings, point) {
  /** @type {Choice[]} */
  const found = [];
  for (const turning of turnings) {
    const choice = isFlat(turning) ? flatChoice(turning, point) : plainChoice(turning, point);
    if (!choice) return null;
    found.push(choice);
  }
  return found;
}

/** @param {Turning} turning
 * @param {Pair} point
 * @returns {Choice | null} */
function plainChoice(turning, point) {
  const { now, up, down } = turning;
  const area = up[0] * down[1] - up[1] * down[0];
  const [x, y] = [point[0] - now[0], point[1] - now[1]];
  return choiceOf(turning, (x * down[1] - y * down[0]) / area, (up[0] * y - up[1] * x) / area);
}

/** The probabilities that lead to a point of a flat group are themselves on a line; its best end.
 * @param {Turning} turning
 * @param {Pair} point
 * @returns {Choice | null} */
function flatChoice(turning, point) {
  const { now, up, down, most } = turning;
  const along = directionOf(turning);
  const [x, y] = [point[0] - now[0], point[1] - now[1]];
  if (Math.abs(x * along[1] - y * along[0]) > ROOM) return null;
  const far = x * along[0] + y * along[1];
  const [byUp, byDown] = [up, down].map((slope) => slope[0] * along[0] + slope[1] * along[1]);
  const [one = 0, two = 0] = [byUp, byDown];
  /** @type {[number, number][]} */
  const ends = [];
  for (const end of [0, 1]) {
    if (one) ends.push([(far - end * most[1] * two) / one, end * most[1]]);
    if (two) ends.push([end * most[0], (far - end * most[0] * one) / two]);
    if (!one && !two && Math.abs(far) <= ROOM) {
      ends.push([end * most[0], 0], [end * most[0], most[1]]);
    }
  }
  const choices = ends.flatMap(([p, q]) => choiceOf(turning, p, q) ?? []);
  const least = Math.min(...choices.map((choice) => choice.loss));
  const best = choices.filter((choice) => choice.loss <= least + ROOM);
  return best.sort((a, b) => a.turned - b.turned)[0] ?? null;
}

/** Two probabilities and what they come to; null where they are none.
 * @param {Turning} turning
 * @param {number} p
 * @param {number} q
 * @returns {Choice | null} */
function choiceOf({ loss, shares, most }, p, q) {
  if (!(p >= -ROOM && p <= most[0] + ROOM && q >= -ROOM && q <= most[1] + ROOM)) return null;
  /** @type {Pair} */
  const flips = [heldTo(p, most[0]), heldTo(q, most[1])];
  return {
    flips,
    loss: flips[0] * loss[0] + flips[1] * loss[1],
    turned: flips[0] * shares[0] + flips[1] * shares[1],
  };
}

/** A probability, at its bound where only rounding keeps it from there.
 * @param {number} p
 * @param {number} most
 * @returns {number} */
function heldTo(p, most) {
  if (p < NOISE * 100) return 0;
  return p > most - NOISE * 100 ? most : p;
}
