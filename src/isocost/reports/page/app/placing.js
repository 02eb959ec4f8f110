/** @file Where words go in a picture: beside what they are about, and on nothing else. */

/** A place in pixels, from the upper left corner.
 * @typedef {{x: number, y: number}} Pixel */

/** @typedef {{left: number, right: number, top: number, bottom: number}} Box */

/** Where a text may stand, seen from its anchor.
 * @typedef {{align: "left" | "right" | "center", dx: number, dy: number}} Seat */

/** What is in a picture already; a stroke's weight says how bad it is to lie on it.
 * @typedef {object} Crowd
 * @property {number} width
 * @property {number} height
 * @property {{x: number, y: number, r: number}[]} marks
 * @property {{a: Pixel, b: Pixel, weight: number}[]} strokes
 * @property {Box[]} boxes texts that have found their place */

const LINE = 15;
export const ON_MARK = 300;
const ON_TEXT = 500;
const OUTSIDE = 1000;
/** A text that is as near to another mark as to its own could be either's. */
const AMBIGUOUS = 45;

/** The seats around an anchor, the best first.
 * @param {number} gap to keep from it
 * @returns {Seat[]} */
export function seatsAround(gap) {
  return [gap, gap + 9, gap + 20, gap + 34, gap + 50].flatMap((far) => {
    const near = 0.6 * far;
    return /** @type {Seat[]} */ ([
      { align: "left", dx: far, dy: 0 },
      { align: "right", dx: -far, dy: 0 },
      { align: "left", dx: near, dy: -far },
      { align: "right", dx: -near, dy: -far },
      { align: "left", dx: near, dy: far },
      { align: "right", dx: -near, dy: far },
      { align: "center", dx: 0, dy: -far - 5 },
      { align: "center", dx: 0, dy: far + 5 },
    ]);
  });
}

/** The room that a text takes; it stands in the middle of its line.
 * @param {Pixel} anchor @param {Seat} seat @param {number} width @returns {Box} */
export function boxOf(anchor, { align, dx, dy }, width) {
  const shift = { left: 0, right: -width, center: -width / 2 }[align];
  const [left, middle] = [anchor.x + dx + shift, anchor.y + dy];
  return { left, right: left + width, top: middle - LINE / 2, bottom: middle + LINE / 2 };
}

/** How far a place is from a box; 0 inside.
 * @param {Pixel} place @param {Box} box */
function distanceTo({ x, y }, { left, right, top, bottom }) {
  return Math.hypot(Math.max(left - x, 0, x - right), Math.max(top - y, 0, y - bottom));
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

/** How bad a place is for a text: 0 if it touches nothing.
 * @param {Box} box
 * @param {Pixel} anchor what the text is about
 * @param {Crowd} crowd @returns {number} */
export function badness(box, anchor, { width, height, marks, strokes, boxes }) {
  const isOut = box.left < 0 || box.right > width || box.top < 0 || box.bottom > height;
  const own = distanceTo(anchor, box);
  const onMarks = marks.filter((mark) => distanceTo(mark, box) < mark.r + 1).length;
  const rivals = marks.filter(
    (mark) => Math.hypot(mark.x - anchor.x, mark.y - anchor.y) > 3 && distanceTo(mark, box) < own,
  ).length;
  const struck = strokes.reduce((sum, { a, b, weight }) => sum + (isStruck(a, b, box) ? weight : 0), 0);
  const wide = { left: box.left - 3, right: box.right + 3, top: box.top, bottom: box.bottom };
  const onTexts = boxes.filter(
    (one) => one.left < wide.right && one.right > wide.left && one.top < wide.bottom && one.bottom > wide.top,
  ).length;
  return (isOut ? OUTSIDE : 0) + ON_MARK * onMarks + AMBIGUOUS * rivals + struck + ON_TEXT * onTexts;
}

/** The best place for a text among several; those that come first win where it is equal.
 * @template {{at: Pixel, seat: Seat}} T
 * @param {T[]} places
 * @param {number} width of the text
 * @param {Crowd} crowd
 * @returns {{place: T, box: Box, score: number}} */
export function bestPlace(places, width, crowd) {
  const judged = places.map((place, order) => {
    const box = boxOf(place.at, place.seat, width);
    return { place, box, score: badness(box, place.at, crowd) + order / 2 };
  });
  return judged.reduce((a, b) => (b.score < a.score ? b : a));
}
