/** @file The data of the pictures: plain lists of marks, computed from what was found. */

import { fixed3 } from "./say.js";

/** @typedef {Record<string, any[]>} Datasets */

/** Names in pictures have little room. */
const LONGEST = 26;

/** @param {string} name */
export function short(name) {
  const letters = [...name];
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : name;
}

/** The group that is furthest from where it would have to be.
 * @param {any} f */
export function blockedOf(f) {
  /** @param {number} i */
  const ceiling = (i) => Math.max(f.costs[i], f.trivial_costs[i]);
  const others = f.costs.map((/** @type {number} */ _, /** @type {number} */ i) => i);
  const candidates = f.unreachable.length ? f.unreachable : others.filter((/** @type {number} */ i) => i !== f.target);
  return candidates.reduce((/** @type {number} */ a, /** @type {number} */ b) => (ceiling(b) < ceiling(a) ? b : a));
}

/** Whether a repair aims at equal cost, or none is chosen; others have no cost to reach.
 * @param {any} chosen */
export function isAimed(chosen) {
  return !chosen || chosen.goal === "cost";
}

/** Where each group's cost is, how far it can be raised, and the line it has to reach.
 * @param {any} found
 * @param {any} look colours and shapes
 * @param {number} width in pixels
 * @returns {{data: Datasets, signals: Record<string, number>}} */
export function costsFigure({ f, spoken, shown, chosen }, look, width) {
  const count = f.costs.length;
  const tops = f.costs.map((/** @type {number} */ own, /** @type {number} */ i) =>
    Math.max(own, f.trivial_costs[i], f.goal, chosen?.after?.[i].cost ?? 0),
  );
  const high = Math.max(...tops) * 1.1;
  /** @type {Datasets} */
  const data = { spans: [], points: [], ends: [], names: [], values: [], gaps: [], target: [], after: [] };
  const room = (52 / Math.max(width, 200)) * high;
  // Names stand on the line of their bar where there is room before it, and above it elsewhere.
  const isRoomy = f.costs.every((/** @type {number} */ own, /** @type {number} */ i) =>
    (own / high) * width > 8.6 * short(spoken[i]).length + 30,
  );
  f.costs.forEach((/** @type {number} */ own, /** @type {number} */ i) => {
    const row = count - 1 - i;
    const color = look.colors[shown[i]];
    const name = spoken[i];
    const end = f.trivial_costs[i];
    const base = { row, name, color };
    data["names"]?.push({ ...base, x: 0, row: row + (isRoomy ? 0 : 0.4), text: short(name), color: look.ink });
    const point = { ...base, x: own, shape: look.shapes[shown[i]] };
    data["points"]?.push(point);
    data["after"]?.push(...movedMark(point, chosen?.after?.[i].cost, look, width / high));
    const [left, right] = besides(own, end, isAimed(chosen) ? f.goal : Infinity, room);
    data["values"]?.push({ ...base, x: left, text: fixed3(own), color: look.ink });
    if (end > own) {
      const tip = `calibrated scores can cost at most ${fixed3(end)}`;
      data["spans"]?.push({ ...base, x: own, x2: end, dash: [1, 0], thick: 10, opacity: 0.32, tip });
      data["ends"]?.push({ ...base, x: end });
      data["values"]?.push({ ...base, x: right, text: fixed3(end), color: look.muted });
    }
    const top = Math.max(own, end);
    if (f.unreachable.includes(i) && isAimed(chosen)) {
      const tip = `${fixed3(f.goal - top)} out of reach`;
      const span = { ...base, x: top, x2: f.goal, dash: [5, 4], thick: 3, opacity: 1 };
      data["spans"]?.push({ ...span, color: look.alert, tip });
      data["gaps"]?.push({ ...base, x: f.goal, text: tip, color: look.alert });
    }
  });
  const text = f.tolerance ? `cost to reach: ${fixed3(f.goal)}` : `to match: ${fixed3(f.goal)}`;
  if (isAimed(chosen) && (f.changed.length || !f.feasible)) {
    data["target"]?.push({ x: f.goal, tip: text, color: look.ink });
    data["gaps"]?.push({ x: f.goal, row: count - 0.35, text, color: look.ink });
  }
  return { data, signals: { high, rows: count + 0.1 } };
}

/** A hollow mark where a repair takes a cost; where hardly anything changes it would blur the other.
 * @param {any} point @param {number | undefined} cost @param {any} look
 * @param {number} scale pixels per unit of cost */
function movedMark(point, cost, look, scale) {
  if (cost === undefined || !(Math.abs(cost - point.x) * scale > 3)) return [];
  return [{ ...point, x: cost, paper: look.paper }];
}

/** Places for the texts of a cost and its end that keep clear of each other and of the goal.
 * @param {number} own @param {number} end @param {number} goal
 * @param {number} room how wide a text is */
function besides(own, end, goal, room) {
  /** @param {number} x @param {boolean} right */
  const clear = (x, right) =>
    Math.abs(x - goal) > room / 2 ? x : goal + (right ? 0.6 : -0.6) * room;
  const far = clear(end, end > goal);
  if (end <= own) return [clear(own, false), end];
  const near = clear(own, own > goal + room / 4);
  return far - near >= room ? [near, far] : [Math.min(near, far - room), far];
}

/** The floor of the strip of bars below the rates. */
const STRIP = -0.2;

/** What scores say beside what came true, for one group.
 * @param {any[]} bins of the model's reliability
 * @param {string} color @param {any} look @returns {Datasets} */
export function reliabilityFigure(bins, color, look) {
  const all = bins.reduce((total, bin) => total + bin.n, 0);
  const most = Math.max(...bins.map((bin) => bin.n / all));
  return {
    diagonal: [{ x: 0, y: 0, x2: 1, y2: 1, color: look.muted }],
    bars: bins.map((bin) => ({ x: bin.lo, x2: bin.hi, y: STRIP + (0.15 * bin.n) / all / most, y2: STRIP, color })),
    whiskers: bins
      .filter((bin) => Number.isFinite(bin.low))
      .map((bin) => ({ x: bin.mean_score, y: bin.low, y2: bin.high, color })),
    bins: bins.map((bin) => ({
      x: bin.mean_score, y: bin.mean_label, n: bin.n, color,
      range: `${bin.lo.toFixed(1)} to ${bin.hi.toFixed(1)}`,
    })),
  };
}

/** How far beyond the marks, as a share of their range, the corner of calibrated scores may be and still be shown. */
const NEAR = 1.5;

/** With more groups than this, lines and intervals would hide the marks. */
const MOST_LINES = 8;

/** Who turned out positive among the passed over (x) and the selected (y), and what scores predict.
 * @param {any} found @param {any} look
 * @returns {{data: Datasets, signals: Record<string, number>}} */
export function valuesFigure(found, look) {
  const { state, m, sides, spoken, shown } = found;
  const t = state.threshold;
  /** @type {Datasets} */
  const data = {
    area: [{ x: 0, x2: t, y: t, y2: 1, color: look.soft }],
    diagonal: [{ x: 0, y: 0, x2: 1, y2: 1, color: look.line }],
    lines: [], whiskers: [], links: [], base: [], predicted: [], groups: [],
  };
  m.forEach((/** @type {any} */ one, /** @type {number} */ i) => {
    const [x, y, mu] = [one.false_omission_rate, one.ppv, one.base_rate];
    if (!Number.isFinite(x + y)) return;
    const base = { color: look.colors[shown[i]], shape: look.shapes[shown[i]], name: spoken[i], x, y };
    const guess = { x: sides[i].passed, y: sides[i].selected };
    if (m.length <= MOST_LINES) {
      data["lines"]?.push({ ...base, x2: mu, y2: mu });
      data["whiskers"]?.push(...whiskersOf(base, found.own.intervals[shown[i]], found.sameThreshold));
    }
    data["links"]?.push({ ...base, x2: guess.x, y2: guess.y });
    data["base"]?.push({ ...base, x: mu, y: mu, what: "base rate" });
    data["predicted"]?.push({ ...base, ...guess, paper: look.paper, what: "predicted by its own scores" });
    data["groups"]?.push({ ...base, what: "observed" });
  });
  return { data, signals: partShown(data, t) };
}

/** The intervals of both rates, while they are those of the threshold.
 * @param {any} base @param {any} spans @param {boolean} isSame */
function whiskersOf(base, spans, isSame) {
  const [across, up] = [spans?.["false_omission_rate"], spans?.["ppv"]];
  if (!isSame || !across || !up) return [];
  return [
    { ...base, x: across[0], x2: across[1], y2: base.y },
    { ...base, x2: base.x, y: up[0], y2: up[1] },
  ];
}

/** The part of the plane that has the marks, and some of the area of calibrated scores.
 * @param {Datasets} data @param {number} t the threshold */
function partShown(data, t) {
  const marks = ["groups", "predicted", "base", "whiskers"].flatMap((name) => data[name] ?? []);
  /** @param {string} axis @param {boolean} isAbove whether the area begins, and does not end, at the threshold */
  const ends = (axis, isAbove) => {
    const values = marks.flatMap((one) => [one[axis], one[`${axis}2`] ?? one[axis]]).filter(Number.isFinite);
    let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    const room = NEAR * Math.max(high - low, 0.02);
    if (isAbove ? t >= low - room : t <= high + room) [low, high] = [Math.min(low, t), Math.max(high, t)];
    const pad = Math.max(0.08 * (high - low), 0.002);
    return [Math.max(low - pad, 0), Math.min(high + pad, 1)];
  };
  const [left = 0, right = 1] = ends("x", false);
  const [low = 0, high = 1] = ends("y", true);
  return { left, right, low, high };
}
