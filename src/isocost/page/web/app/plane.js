/** @file The data of the plane of the two rates: marks, lines, arrows, and words that keep clear of them. */

import { coefficients, isPerGroup } from "../model/costs.js";
import { blockedOf } from "../model/measures.js";
import { ON_MARK, around, crowdOf, namesFor, pixel, placed } from "./placing.js";

/** @typedef {Record<string, any[]>} Datasets */

/** Half the width of a group's mark, in pixels. */
const MARK = 9;
/** An arrow that is shorter, in pixels, would be a blob on its mark. */
const SHORTEST = 14;

/** @typedef {import("./placing.js").Frame} Frame */

/** @typedef {{x: number, y: number}} Place two rates */

/** The groups in the plane of the two rates, with lines, ends, the place needed and arrows.
 * @param {any} results @param {any} look @param {{width: number, height: number}} size in pixels
 * @returns {{data: Datasets, signals: Record<string, number>}} */
export function planeFigure(results, look, size) {
  const { f, m, shown, spoken, chosen } = results;
  const bare = m.map((/** @type {any} */ one, /** @type {number} */ i) => spotOf(one, f, i));
  const signals = { left: 0, low: 0, ...boundsOf(bare, chosen, size.width) };
  /** @type {Frame} */
  const frame = { ...signals, ...size };
  const spots = bare.map((/** @type {any} */ spot) => ({ ...spot, ...neededIn(spot, frame) }));
  /** @type {Datasets} */
  const data = {
    diagonal: [{ x: 0, y: 1, x2: 1, y2: 0, color: look.line }],
    levels: levelLine(results, signals, look),
    lines: [], beyond: [], arrows: [], heads: [], trivial: [], needed: [], groups: [],
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
  return { data: { ...data, ...textsOf(results, spots, data, look, frame) }, signals };
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

/** @param {Place} from @param {Place} to @param {Frame} frame */
function apart(from, to, frame) {
  const [a, b] = [pixel(from, frame), pixel(to, frame)];
  return Math.hypot(b.x - a.x, b.y - a.y);
}

/** Where a group would have to be, cut off where the picture ends: Vega makes room for all it is given.
 * @param {any} spot @param {Frame} frame */
function neededIn({ trivial, needed }, { right, high }) {
  if (!needed) return { needed, isCut: false };
  const [dx, dy] = [needed.x - trivial.x, needed.y - trivial.y];
  /** @param {number} start @param {number} step @param {number} end */
  const share = (start, step, end) => (step > 0 ? (end - start) / step : step < 0 ? start / -step : 1);
  const part = Math.min(1, share(trivial.x, dx, right), share(trivial.y, dy, high));
  return { needed: { x: trivial.x + part * dx, y: trivial.y + part * dy }, isCut: part < 1 };
}

/** A cross of two strokes, for the place where a group would have to be. */
const CROSS = "M-0.5,-0.5L0.5,0.5M0.5,-0.5L-0.5,0.5";

/** @param {any} a @param {any} b */
function ends(a, b) {
  return { x: a.x, y: a.y, x2: b.x, y2: b.y };
}

/** @param {any} one @param {any} f @param {number} i */
function spotOf(one, f, i) {
  const now = { x: one.generalized_fpr, y: one.generalized_fnr };
  const trivial = { x: one.base_rate, y: 1 - one.base_rate };
  const share = f.alpha[i];
  if (!(share > 0 && Number.isFinite(share))) return { now, trivial, needed: null };
  return { now, trivial, needed: { x: now.x + share * (trivial.x - now.x), y: now.y + share * (trivial.y - now.y) } };
}

/** @param {any[]} spots @param {any} chosen @param {number} width in pixels */
function boundsOf(spots, chosen, width) {
  /** @param {"x" | "y"} axis @param {string} rate */
  const top = (axis, rate) => {
    const values = spots.flatMap((spot) =>
      [spot.now, spot.trivial, spot.needed].filter(Boolean).map((place) => place[axis]),
    );
    const after = (chosen?.after ?? []).map((/** @type {any} */ one) => one[rate]);
    // No rate exceeds 1; a place past it is only pointed to.
    return Math.min(1.08, 1.12 * Math.max(...values, ...after));
  };
  // Names stand beside their marks, and take more of a narrow picture.
  return { right: (width < 420 ? 1.2 : 1.05) * top("x", "generalized_fpr"), high: top("y", "generalized_fnr") };
}

/** Where the cost is the one to reach: a line, or for a weighted cost a curve over base rates.
 * @param {any} results @param {{right: number, high: number}} bounds @param {any} look */
function levelLine({ f, tally }, bounds, look) {
  /** @param {{x: number, y: number}[]} points */
  const colored = (points) => points.map((point, order) => ({ ...point, order, color: look.ink }));
  if (isPerGroup(f.cost)) return [];
  if (f.cost.kind === "weighted") return colored(levelCurve(f.cost.fp + f.cost.fn, f.goal));
  const [a, b] = coefficients(f.cost, tally.groups[0], 0.5);
  const [x, y] = [f.goal / a, f.goal / b];
  if (b === 0) return colored([{ x, y: 0 }, { x, y: bounds.high }]);
  if (a === 0) return colored([{ x: 0, y }, { x: bounds.right, y }]);
  return colored([{ x: 0, y }, { x, y: 0 }]);
}

/** Into how many steps a level curve is divided. */
const STEPS = 200;

/** Where calibrated scores of any base rate cost the target, per person.
 *
 * Those of base rate mu are s (mu, 1 - mu), from perfect, s = 0, to trivial, s = 1, and cost
 * s (fp + fn) mu (1 - mu).
 * @param {number} total fp + fn
 * @param {number} target @returns {Place[]} */
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
 * @param {any} results @param {any[]} spots @param {Datasets} data what is drawn @param {any} look @param {Frame} frame */
function textsOf({ f, spoken }, spots, data, look, frame) {
  // Words that only explain are left out rather than put on something.
  const plain = { weight: 400, color: look.muted, worst: 35 };
  /** @type {any[]} */
  const wanted = namesFor(data["groups"] ?? [], look, frame);
  const blocked = f.unreachable.length ? blockedOf(f) : -1;
  if (blocked >= 0 && spots[blocked].needed) {
    const [name, { needed, trivial }] = [spoken[blocked], spots[blocked]];
    wanted.push({ text: "out of reach", weight: 600, color: look.alert, places: around(needed, 14, name), worst: ON_MARK });
    wanted.push({ ...plain, text: "its line ends here", places: around(trivial, 13, name).slice(0, 32) });
  }
  // The ends of the diagonal first: groups are in the middle.
  const diagonal = [0.04, 0.9, 0.15, 0.8, 0.3, 0.6].map((part) => part * Math.min(1, frame.right)).map((x) => ({ x, y: 1 - x }));
  wanted.push({ ...plain, text: "perfect scores", places: around({ x: 0, y: 0 }, 16).slice(0, 48) });
  wanted.push({ ...plain, text: "no information", places: diagonal.flatMap((spot) => around(spot, 9).slice(0, 8)) });
  const levels = data["levels"] ?? [];
  const shown = { ...data, levels: levels.slice(1).map((b, i) => ends(levels[i], b)) };
  const [marks, strokes] = [{ groups: MARK, trivial: 7, needed: 9, heads: 8 }, { levels: 40, arrows: 60, beyond: 40, lines: 12, diagonal: 12 }];
  return placed(wanted, crowdOf(shown, frame, marks, strokes), look, frame);
}
