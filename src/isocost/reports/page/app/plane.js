/** @file The data of the plane of the two rates: marks, lines, arrows, and words that keep clear of them. */

import { coefficients, isPerGroup } from "../model/costs.js";
import { levelCurve } from "../model/views.js";
import { blockedOf, short } from "./figures.js";
import { ON_MARK, bestPlace, seatsAround } from "./placing.js";

/** @typedef {Record<string, any[]>} Datasets */

/** Half the width of a group's mark, in pixels. */
const MARK = 9;
/** An arrow that is shorter, in pixels, would be a blob on its mark. */
const SHORTEST = 14;

/** With more groups than this, their names are in the legend only. */
const MOST_NAMES = 4;

/** A picture of the plane: how far its axes go, and from rates to pixels and back.
 * @typedef {{right: number, top: number, width: number, height: number}} Frame */

/** @typedef {{x: number, y: number}} Place two rates, or pixels */

/** The groups in the plane of the two rates, with lines, ends, the place needed and arrows.
 * @param {any} found @param {any} look
 * @param {{width: number, height: number}} size in pixels
 * @returns {{data: Datasets, signals: Record<string, number>}} */
export function planeFigure(found, look, size) {
  const { f, m, shown, spoken, chosen } = found;
  const bare = m.map((/** @type {any} */ one, /** @type {number} */ i) => spotOf(one, f, i));
  const signals = boundsOf(bare, chosen, size.width);
  /** @type {Frame} */
  const frame = { ...signals, ...size };
  const spots = bare.map((/** @type {any} */ spot) => ({ ...spot, ...neededIn(spot, frame) }));
  /** @type {Datasets} */
  const data = {
    diagonal: [{ x: 0, y: 1, x2: 1, y2: 0, color: look.line }],
    levels: levelLine(found, signals, look),
    lines: [], beyond: [], arrows: [], heads: [], trivial: [], needed: [], groups: [], texts: [],
  };
  spots.forEach((/** @type {any} */ spot, /** @type {number} */ i) => {
    const base = { color: look.colors[shown[i]], name: spoken[i], shape: look.shapes[shown[i]] };
    data["lines"]?.push({ ...base, x: 0, y: 0, x2: spot.trivial.x, y2: spot.trivial.y });
    data["trivial"]?.push({ ...base, ...spot.trivial, what: "no information: the end of its line" });
    data["groups"]?.push({ ...base, ...spot.now, what: "now" });
    const arrow = arrowOf(spot.now, chosen?.after?.[i], base, frame);
    if (arrow) data["arrows"]?.push(arrow.shaft);
    if (arrow) data["heads"]?.push(arrow.head);
    addNeeded(data, spot, base, { blocked: f.unreachable.includes(i), arrow, frame, look });
  });
  data["texts"] = textsOf(found, spots, data, look, frame);
  return { data, signals };
}

/** The place that a group would have to be at; not where it is, or its arrow ends, as far as one can see.
 * @param {Datasets} data @param {any} spot @param {any} base @param {any} more */
function addNeeded(data, { now, trivial, needed, isCut }, base, { blocked, arrow, frame, look }) {
  if (!needed) return;
  const isThere = apart(now, needed, frame) < SHORTEST || (arrow && apart(arrow.head, needed, frame) < SHORTEST);
  if (isThere && !blocked) return;
  const color = blocked ? look.alert : base.color;
  const what = blocked ? "needed, but out of reach" : "needed for equal cost";
  if (!isCut) data["needed"]?.push({ ...base, ...needed, shape: CROSS, color, what });
  if (blocked) data["beyond"]?.push({ ...ends(trivial, needed), color });
}

/** Rates as pixels, from the upper left corner.
 * @param {Place} place @param {Frame} frame @returns {Place} */
function pixel({ x, y }, { right, top, width, height }) {
  return { x: (x / right) * width, y: height - (y / top) * height };
}

/** How many pixels are between two places.
 * @param {Place} from @param {Place} to @param {Frame} frame */
function apart(from, to, frame) {
  const [a, b] = [pixel(from, frame), pixel(to, frame)];
  return Math.hypot(b.x - a.x, b.y - a.y);
}

/** Where a group would have to be, cut off where the picture ends: Vega makes room for all it is given.
 * @param {any} spot @param {Frame} frame */
function neededIn({ trivial, needed }, { right, top }) {
  if (!needed) return { needed, isCut: false };
  const [dx, dy] = [needed.x - trivial.x, needed.y - trivial.y];
  /** @param {number} start @param {number} step @param {number} end */
  const share = (start, step, end) => (step > 0 ? (end - start) / step : step < 0 ? start / -step : 1);
  const part = Math.min(1, share(trivial.x, dx, right), share(trivial.y, dy, top));
  return { needed: { x: trivial.x + part * dx, y: trivial.y + part * dy }, isCut: part < 1 };
}

/** A cross of two strokes, for the place where a group would have to be. */
const CROSS = "M-0.5,-0.5L0.5,0.5M0.5,-0.5L-0.5,0.5";

/** @param {any} a @param {any} b */
function ends(a, b) {
  return { x: a.x, y: a.y, x2: b.x, y2: b.y };
}

/** Where a group is, where its line ends, and where it would have to be.
 * @param {any} one @param {any} f @param {number} i */
function spotOf(one, f, i) {
  const now = { x: one.generalized_fpr, y: one.generalized_fnr };
  const trivial = { x: one.base_rate, y: 1 - one.base_rate };
  const share = f.alpha[i];
  const isShown = share > 0 && Number.isFinite(share);
  const needed = isShown
    ? { x: now.x + share * (trivial.x - now.x), y: now.y + share * (trivial.y - now.y) }
    : null;
  return { now, trivial, needed };
}

/** How far the axes go.
 * @param {any[]} spots @param {any} chosen
 * @param {number} width in pixels */
function boundsOf(spots, chosen, width) {
  /** @param {"x" | "y"} axis @param {string} rate */
  const top = (axis, rate) => {
    const values = spots.flatMap((spot) =>
      [spot.now, spot.trivial, spot.needed].filter(Boolean).map((place) => place[axis]),
    );
    const after = (chosen?.after ?? []).map((/** @type {any} */ one) => one[rate]);
    // No rate exceeds 1; a place past it is only pointed to.
    return Math.min(1.08, Math.max(...values, ...after) + 0.1);
  };
  // Names stand beside their marks, and take more of a narrow picture.
  const wider = width < 420 && spots.length <= MOST_NAMES ? 1.2 : 1;
  return { right: wider * top("x", "generalized_fpr"), top: top("y", "generalized_fnr") };
}

/** Where the cost is the one to reach: a line, or for a weighted cost a curve over base rates.
 * @param {any} found @param {{right: number, top: number}} bounds @param {any} look */
function levelLine({ f, tally }, bounds, look) {
  /** @param {{x: number, y: number}[]} points */
  const colored = (points) => points.map((point, order) => ({ ...point, order, color: look.ink }));
  if (isPerGroup(f.cost)) return [];
  if (f.cost.kind === "weighted") return colored(levelCurve(f.cost.fp + f.cost.fn, f.goal));
  const [a, b] = coefficients(f.cost, tally.groups[0], 0.5);
  const [x, y] = [f.goal / a, f.goal / b];
  if (b === 0) return colored([{ x, y: 0 }, { x, y: bounds.top }]);
  if (a === 0) return colored([{ x: 0, y }, { x: bounds.right, y }]);
  return colored([{ x: 0, y }, { x, y: 0 }]);
}

/** An arrow from the edge of a group's mark to where a repair takes it; nothing if it hardly moves.
 * @param {Place} now @param {any} after @param {any} base @param {Frame} frame */
function arrowOf(now, after, base, frame) {
  if (!after) return null;
  const end = { x: after.generalized_fpr, y: after.generalized_fnr };
  const long = apart(now, end, frame);
  if (!(long >= SHORTEST)) return null;
  const [a, b] = [pixel(now, frame), pixel(end, frame)];
  const angle = (Math.atan2(b.x - a.x, a.y - b.y) * 180) / Math.PI;
  const part = Math.min(1, MARK / long);
  const start = { x: now.x + part * (end.x - now.x), y: now.y + part * (end.y - now.y) };
  return { shaft: { ...base, ...ends(start, end) }, head: { ...base, ...end, angle, what: "after the repair" } };
}

/** The words in the plane: few, beside what they are about, and clear of everything else.
 * @param {any} found @param {any[]} spots
 * @param {Datasets} data what is drawn
 * @param {any} look @param {Frame} frame */
function textsOf({ f, spoken }, spots, data, look, frame) {
  const crowd = crowdOf(data, frame);
  /** @type {any[]} */
  const texts = [];
  /** @param {any} words text, weight and colour
   * @param {any[]} places
   * @param {number} [worst] a place that is worse is none */
  const add = (words, places, worst = Infinity) => {
    const { place, box, score } = bestPlace(places, widthOf(words, look), crowd);
    if (score > worst) return;
    crowd.boxes.push(box);
    texts.push({ ...words, x: place.x, y: place.y, ...place.seat });
  };
  /** @param {any} spot @param {number} gap */
  const around = (spot, gap) => seatsAround(gap).map((seat) => ({ ...spot, at: pixel(spot, frame), seat }));
  const plain = { weight: 400, color: look.muted };
  const blocked = f.unreachable.length ? blockedOf(f) : -1;
  const beyond = blocked >= 0 ? spots[blocked].needed : null;
  if (spots.length <= MOST_NAMES) {
    // The longest are the hardest to place.
    const order = spots.map((_, i) => i).sort((a, b) => spoken[b].length - spoken[a].length);
    for (const i of order) {
      // Where there is no room, the legend has the name.
      add({ text: short(spoken[i]), weight: 600, color: look.ink }, around(spots[i].now, 14), ON_MARK);
    }
  }
  if (beyond) {
    add({ text: "out of reach", weight: 600, color: look.alert }, around(beyond, 14));
    add({ ...plain, text: "its line ends here" }, around(spots[blocked].trivial, 13), MOST);
  }
  add({ ...plain, text: "perfect scores" }, alongTheFloor(frame), MOST);
  add({ ...plain, text: "no information" }, alongTheDiagonal(frame), MOST);
  return texts;
}

/** Words that only explain are left out rather than put on something. */
const MOST = 35;

/** @param {any} words @param {any} look */
function widthOf({ text, weight }, look) {
  // Vega cuts a text that is longer than this.
  return Math.min(190, look.measure?.(text, weight) ?? 7.4 * text.length);
}

/** What the words must keep clear of.
 * @param {Datasets} data @param {Frame} frame @returns {import("./placing.js").Crowd} */
function crowdOf(data, frame) {
  /** @param {string} name @param {number} r */
  const marks = (name, r) => (data[name] ?? []).map((one) => ({ ...pixel(one, frame), r }));
  /** @param {string} name @param {number} weight */
  const strokes = (name, weight) =>
    (data[name] ?? []).map((one) => ({ a: pixel(one, frame), b: pixel({ x: one.x2, y: one.y2 }, frame), weight }));
  const levels = (data["levels"] ?? []).map((one) => pixel(one, frame));
  return {
    ...frame,
    marks: [...marks("groups", MARK), ...marks("trivial", 7), ...marks("needed", 9), ...marks("heads", 8)],
    strokes: [
      ...levels.slice(1).map((b, i) => ({ a: levels[i] ?? b, b, weight: 40 })),
      ...strokes("arrows", 60), ...strokes("beyond", 40), ...strokes("lines", 12), ...strokes("diagonal", 12),
    ],
    boxes: [],
  };
}

/** @param {Frame} frame */
function alongTheFloor(frame) {
  return Array.from({ length: 12 }, (_, i) => ({
    x: 0, y: 0, at: pixel({ x: 0, y: 0 }, frame), seat: { align: /** @type {const} */ ("left"), dx: 14 + 18 * i, dy: -9 },
  }));
}

/** Places on both sides of the diagonal, from its ends inwards: groups are in the middle.
 * @param {Frame} frame */
function alongTheDiagonal(frame) {
  const [start, end] = [Math.max(0, 1 - frame.top) + 0.02, Math.min(1, frame.right) - 0.02];
  return Array.from({ length: 8 }, (_, i) => i / 16).flatMap((share) =>
    [share, 1 - share].flatMap((part) => {
      const x = start + part * (end - start);
      const place = { x, y: 1 - x };
      return /** @type {const} */ ([["left", 9, -6], ["right", -9, 8]]).map(([align, dx, dy]) => ({
        ...place, at: pixel(place, frame), seat: { align, dx, dy },
      }));
    }),
  );
}
