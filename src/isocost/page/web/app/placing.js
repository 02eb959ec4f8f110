/** @file Where words go in a picture: beside what they are about or tied to it by a line, and on nothing else. */

import { short } from "./say.js";

/** A place in pixels, from the upper left corner; a stretch between two; and the room of a text.
 * @typedef {{x: number, y: number}} Pixel
 * @typedef {{a: Pixel, b: Pixel}} Stretch
 * @typedef {{left: number, right: number, top: number, bottom: number}} Box
 * Where a text may stand, seen from its anchor; and the ends of both axes, with how many pixels they have.
 * @typedef {{align: "left" | "right" | "center", dx: number, dy: number}} Seat
 * @typedef {{left: number, right: number, low: number, high: number, width: number, height: number}} Frame
 * What is in a picture: marks and whose they are, strokes and how bad it is to lie on them, texts, and lines from these to their marks.
 * @typedef {{width: number, height: number, marks: {x: number, y: number, r: number, name?: string}[],
 *   strokes: (Stretch & {weight: number})[], boxes: Box[], ties?: Stretch[]}} Crowd */

const LINE = 15;
const LIMIT = 190;
export const ON_MARK = 600;
const ON_TEXT = 900;
const OUTSIDE = 2000;
/** A text that is further from its mark, or as near to another, is tied to it by a line. */
const NEAR = 18;
const TIED = 12;
const CROSSED = 60;

/** @param {{x: number, y: number}} place @param {Frame} frame @returns {Pixel} */
export function pixel({ x, y }, { left, right, low, high, width, height }) {
  return { x: ((x - left) / (right - left)) * width, y: height - ((y - low) / (high - low)) * height };
}

/** @param {Pixel} place @param {Frame} frame */
function unpixel({ x, y }, { left, right, low, high, width, height }) {
  return { x: left + (x / width) * (right - left), y: low + ((height - y) / height) * (high - low) };
}

/** Directions in which a text may stand, in sixteenths of a turn: beside, at the corners, above and below, between. */
const TURNS = [0, 8, 14, 10, 2, 6, 12, 4, 15, 9, 1, 7, 13, 11, 3, 5];

/** @param {number} gap to keep from it @returns {Seat[]} */
export function seatsAround(gap) {
  return [0, 8, 18, 30, 44, 60, 80, 104, 132, 164].flatMap((more) =>
    TURNS.map((turn) => {
      const [across, down] = [Math.cos((turn * Math.PI) / 8), Math.sin((turn * Math.PI) / 8)];
      const align = Math.abs(across) < 0.2 ? "center" : across > 0 ? "left" : "right";
      return { align, dx: (gap + more) * across, dy: (gap + more + (align === "center" ? 5 : 0)) * down };
    }),
  );
}

/** The room that a text takes; it stands in the middle of its line.
 * @param {Pixel} anchor @param {Seat} seat @param {number} width @returns {Box} */
export function boxOf(anchor, { align, dx, dy }, width) {
  const shift = { left: 0, right: -width, center: -width / 2 }[align];
  const [left, middle] = [anchor.x + dx + shift, anchor.y + dy];
  return { left, right: left + width, top: middle - LINE / 2, bottom: middle + LINE / 2 };
}

/** The point of a box that is nearest to a place, and how far that is.
 * @param {Pixel} place @param {Box} box */
function edgeOf({ x, y }, { left, right, top, bottom }) {
  const edge = { x: Math.min(Math.max(x, left), right), y: Math.min(Math.max(y, top), bottom) };
  return { edge, far: Math.hypot(edge.x - x, edge.y - y) };
}

/** Whether a stretch goes through a box: what lies inside all four sides is not empty.
 * @param {Pixel} a @param {Pixel} b @param {Box} box @returns {boolean} */
export function isStruck(a, b, { left, right, top, bottom }) {
  let [from, to] = [0, 1];
  for (const [start, step, low, high] of [[a.x, b.x - a.x, left, right], [a.y, b.y - a.y, top, bottom]]) {
    const [s = 0, d = 0, l = 0, h = 0] = [start, step, low, high];
    if (d === 0 && (s < l || s > h)) return false;
    if (d === 0) continue;
    from = Math.max(from, Math.min((l - s) / d, (h - s) / d));
    to = Math.min(to, Math.max((l - s) / d, (h - s) / d));
  }
  return from <= to;
}

/** @param {Stretch} one @param {Stretch} other */
function isCrossed(one, other) {
  /** @param {Pixel} p @param {Stretch} line */
  const side = (p, { a, b }) => (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
  return side(one.a, other) * side(one.b, other) < 0 && side(other.a, one) * side(other.b, one) < 0;
}

/** How bad a place is for a text, 0 if it touches nothing; and the line to its mark, if it needs one.
 * @param {Box} box @param {Pixel & {name?: string | undefined}} anchor what the text is about
 * @param {Crowd} crowd @returns {{score: number, tie: Stretch | null}} */
export function badness(box, anchor, { width, height, marks, strokes, boxes, ties = [] }) {
  const isOut = box.left < 0 || box.right > width || box.top < 0 || box.bottom > height;
  const own = edgeOf(anchor, box);
  const others = marks.filter((mark) => (mark.name ?? "") !== anchor.name);
  const onMarks = marks.filter((mark) => edgeOf(mark, box).far < mark.r + 1).length;
  const wide = { left: box.left - 4, right: box.right + 4, top: box.top - 1, bottom: box.bottom + 1 };
  const onTexts = boxes.filter(
    (one) => one.left < wide.right && one.right > wide.left && one.top < wide.bottom && one.bottom > wide.top,
  ).length;
  let score = (isOut ? OUTSIDE : 0) + ON_MARK * onMarks + ON_TEXT * onTexts;
  for (const { a, b, weight } of strokes) score += isStruck(a, b, wide) ? weight : 0;
  for (const { a, b } of ties) score += isStruck(a, b, wide) ? ON_MARK : 0;
  if (anchor.name === undefined || (own.far < NEAR && !others.some((mark) => edgeOf(mark, box).far < own.far + 2))) return { score, tie: null };
  const tie = { a: anchor, b: own.edge };
  score += TIED + CROSSED * ties.filter((other) => isCrossed(tie, other)).length;
  score += ON_MARK * boxes.filter((one) => isStruck(tie.a, tie.b, one)).length;
  for (const { x, y } of others) {
    const touched = isStruck(tie.a, tie.b, { left: x - 6, right: x + 6, top: y - 6, bottom: y + 6 });
    // Where marks lie on each other, the line of one begins on another.
    if (touched && Math.hypot(x - anchor.x, y - anchor.y) > 12) score += CROSSED;
  }
  return { score, tie };
}

/** The best place for a text among several; those that come first win where it is equal.
 * @param {any[]} places @param {number} width of the text @param {Crowd} crowd
 * @returns {{place: any, box: Box, score: number, tie: Stretch | null}} */
export function bestPlace(places, width, crowd) {
  const judged = places.map((place, order) => {
    const box = boxOf(place.at, place.seat, width);
    const { score, tie } = badness(box, place.at, crowd);
    return { place, box, tie, score: score + order / 2 };
  });
  return judged.reduce((a, b) => (b.score < a.score ? b : a));
}

/** What words must keep clear of: marks, with their radius, and strokes, with how bad it is to lie on them.
 * @param {Record<string, any[]>} data @param {Frame} frame
 * @param {Record<string, number>} marks @param {Record<string, number>} strokes @returns {Crowd} */
export function crowdOf(data, frame, marks, strokes) {
  /** @param {any} one @param {string} [end] */
  const at = (one, end = "") => pixel({ x: one[`x${end}`] ?? one.x, y: one[`y${end}`] ?? one.y }, frame);
  return {
    ...frame,
    marks: Object.entries(marks).flatMap(([key, r]) => (data[key] ?? []).map((one) => ({ ...at(one), r, name: one.name }))),
    strokes: Object.entries(strokes).flatMap(([key, weight]) => (data[key] ?? []).map((one) => ({ a: at(one), b: at(one, "2"), weight }))),
    boxes: [],
  };
}

/** How long a text is, in pixels; Vega cuts what is longer than the limit.
 * @param {string} text @param {number} weight @param {any} look */
export function lengthOf(text, weight, look) {
  return Math.min(LIMIT, look.measure?.(text, weight) ?? 7.4 * text.length);
}

/** Put texts into a picture, the first first; those whose best place is worse than they allow are left out.
 * @param {any[]} wanted texts with weight and colour, the places they may have, and how bad these may be
 * @param {Crowd} crowd @param {any} look @param {Frame} frame
 * @param {number} [tries] how often a name that found no room may go first @returns {{texts: any[], ties: any[]}} */
export function placed(wanted, crowd, look, frame, tries = 4) {
  /** @type {{texts: any[], ties: any[]}} */
  const data = { texts: [], ties: [] };
  const taken = { ...crowd, boxes: [...crowd.boxes], ties: /** @type {Stretch[]} */ ([]) };
  for (const { places, worst = Infinity, ...words } of wanted) {
    const seats = places.map((/** @type {any} */ one) => ({ ...one, at: { ...pixel(one, frame), name: one.name } }));
    const { place, box, score, tie } = bestPlace(seats, lengthOf(words.text, words.weight, look), taken);
    if (score > worst && worst === ON_MARK && tries) {
      const without = wanted.find((one) => one.text === words.text);
      return placed([without, ...wanted.filter((one) => one !== without)], crowd, look, frame, tries - 1);
    }
    if (score > worst) continue;
    taken.boxes.push(box);
    data.texts.push({ ...words, x: place.x, y: place.y, name: place.name, ...place.seat });
    if (!tie) continue;
    taken.ties.push(tie);
    const end = unpixel(tie.b, frame);
    data.ties.push({ x: place.x, y: place.y, x2: end.x, y2: end.y, name: place.name, color: look.muted });
  }
  return data;
}

/** @param {{x: number, y: number}} spot @param {number} gap to keep from it @param {string} [name] whose mark it is */
export function around({ x, y }, gap, name) {
  return seatsAround(gap).map((seat) => ({ x, y, name, seat }));
}

/** Names beside the marks of groups, to be placed; where there is no room, the legend has the name.
 * @param {any[]} marks @param {any} look @param {Frame} frame */
export function namesFor(marks, look, { width }) {
  // The longest are the hardest to place.
  const order = [...marks].sort((a, b) => b.name.length - a.name.length);
  return order.map((mark) => ({
    text: short(mark.name, width), weight: 600, color: look.ink, worst: ON_MARK, places: around(mark, 14, mark.name),
  }));
}
