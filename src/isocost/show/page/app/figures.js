/** @file The data of the pictures: plain lists of marks, computed from what was found. */

import { coefficients, isPerGroup } from "../model/costs.js";
import { levelCurve } from "../model/views.js";
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
  return f.unreachable.reduce((/** @type {number} */ a, /** @type {number} */ b) =>
    ceiling(b) < ceiling(a) ? b : a,
  );
}

/** Where each group's cost is, how far it can be raised, and the line it has to reach.
 * @param {any} found
 * @param {any} look colours and shapes
 * @param {number} width in pixels
 * @returns {{data: Datasets, signals: Record<string, number>}} */
export function costsFigure({ f, spoken, shown }, look, width) {
  const count = f.costs.length;
  const tops = f.costs.map((/** @type {number} */ own, /** @type {number} */ i) =>
    Math.max(own, f.trivial_costs[i], f.goal),
  );
  const high = Math.max(...tops) * 1.1;
  /** @type {Datasets} */
  const data = { spans: [], points: [], ends: [], names: [], values: [], gaps: [], target: [] };
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
    data["points"]?.push({ ...base, x: own, shape: look.shapes[shown[i]] });
    const [left, right] = besides(own, end, f.goal, room);
    data["values"]?.push({ ...base, x: left, text: fixed3(own), color: look.ink });
    if (end > own) {
      const tip = `calibrated scores can cost at most ${fixed3(end)}`;
      data["spans"]?.push({ ...base, x: own, x2: end, dash: [1, 0], thick: 10, opacity: 0.32, tip });
      data["ends"]?.push({ ...base, x: end });
      data["values"]?.push({ ...base, x: right, text: fixed3(end), color: look.muted });
    }
    const top = Math.max(own, end);
    if (f.unreachable.includes(i)) {
      const tip = `${fixed3(f.goal - top)} out of reach`;
      const span = { ...base, x: top, x2: f.goal, dash: [5, 4], thick: 3, opacity: 1 };
      data["spans"]?.push({ ...span, color: look.alert, tip });
      data["gaps"]?.push({ ...base, x: f.goal, text: tip, color: look.alert });
    }
  });
  const text = f.tolerance ? `cost to reach: ${fixed3(f.goal)}` : `to match: ${fixed3(f.goal)}`;
  if (f.changed.length || !f.feasible) {
    data["target"]?.push({ x: f.goal, tip: text, color: look.ink });
    data["gaps"]?.push({ x: f.goal, row: count - 0.35, text, color: look.ink });
  }
  return { data, signals: { high, rows: count + 0.1 } };
}

/** Places for the texts of a cost and its end that keep clear of each other and of the goal.
 * @param {number} own
 * @param {number} end
 * @param {number} goal
 * @param {number} room how wide a text is */
function besides(own, end, goal, room) {
  /** @param {number} x
   * @param {boolean} right */
  const clear = (x, right) =>
    Math.abs(x - goal) > room / 2 ? x : goal + (right ? 0.6 : -0.6) * room;
  const far = clear(end, end > goal);
  if (end <= own) return [clear(own, false), end];
  const near = clear(own, own > goal + room / 4);
  return far - near >= room ? [near, far] : [Math.min(near, far - room), far];
}

/** The groups in the plane of the two rates, with lines, ends, the place needed and arrows.
 * @param {any} found
 * @param {any} look
 * @param {{width: number, height: number}} size in pixels
 * @returns {{data: Datasets, signals: Record<string, number>}} */
export function planeFigure(found, look, size) {
  const { f, m, shown, spoken, chosen } = found;
  const spots = m.map((/** @type {any} */ one, /** @type {number} */ i) => spotOf(one, f, i));
  const signals = boundsOf(spots, chosen, size.width);
  /** @type {Datasets} */
  const data = {
    diagonal: [{ x: 0, y: 1, x2: 1, y2: 0, color: look.line }],
    levels: levelLine(found, signals, look),
    lines: [], beyond: [], arrows: [], heads: [], trivial: [], needed: [], groups: [], texts: [],
  };
  spots.forEach((/** @type {any} */ spot, /** @type {number} */ i) => {
    const color = look.colors[shown[i]];
    const base = { color, name: spoken[i], shape: look.shapes[shown[i]] };
    const blocked = f.unreachable.includes(i);
    data["lines"]?.push({ ...base, x: 0, y: 0, x2: spot.trivial.x, y2: spot.trivial.y });
    data["trivial"]?.push({ ...base, ...spot.trivial, what: "no information: the end of its line" });
    data["groups"]?.push({ ...base, ...spot.now, what: "now" });
    const after = chosen?.after?.[i];
    const arrow = after ? arrowOf(spot.now, after, base, signals, size, data["heads"]) : [];
    data["arrows"]?.push(...arrow);
    if (spot.needed && (blocked || !endsAt(arrow[0], spot.needed, signals))) {
      const tone = blocked ? look.alert : color;
      const what = blocked ? "needed, but out of reach" : "needed for equal cost";
      data["needed"]?.push({ ...base, ...spot.needed, shape: CROSS, color: tone, what });
      if (blocked) data["beyond"]?.push({ ...ends(spot.trivial, spot.needed), color: tone });
    }
  });
  data["texts"] = textsOf(found, spots, signals, look, { ...size, levels: data["levels"] });
  return { data, signals };
}

/** Whether an arrow ends at a place, as far as one can see.
 * @param {any} arrow
 * @param {{x: number, y: number}} place
 * @param {{right: number, top: number}} bounds */
function endsAt(arrow, place, bounds) {
  if (!arrow) return false;
  return Math.hypot((arrow.x2 - place.x) / bounds.right, (arrow.y2 - place.y) / bounds.top) < 0.02;
}

/** A cross of two strokes, for the place where a group would have to be. */
const CROSS = "M-0.5,-0.5L0.5,0.5M0.5,-0.5L-0.5,0.5";

/** @param {any} a
 * @param {any} b */
function ends(a, b) {
  return { x: a.x, y: a.y, x2: b.x, y2: b.y };
}

/** Where a group is, where its line ends, and where it would have to be.
 * @param {any} one
 * @param {any} f
 * @param {number} i */
function spotOf(one, f, i) {
  const now = { x: one.generalized_fpr, y: one.generalized_fnr };
  const trivial = { x: one.base_rate, y: 1 - one.base_rate };
  const share = f.alpha[i];
  // A place far outside the picture helps nobody: the line is cut where both rates would be 1.
  const isShown = share > 0 && Number.isFinite(share);
  const needed = isShown
    ? { x: now.x + share * (trivial.x - now.x), y: now.y + share * (trivial.y - now.y) }
    : null;
  return { now, trivial, needed };
}

/** How far the axes go.
 * @param {any[]} spots
 * @param {any} chosen
 * @param {number} width in pixels */
function boundsOf(spots, chosen, width) {
  /** @param {"x" | "y"} axis
   * @param {string} rate */
  const top = (axis, rate) => {
    const values = spots.flatMap((spot) =>
      [spot.now, spot.trivial, spot.needed].filter(Boolean).map((place) => place[axis]),
    );
    const after = (chosen?.after ?? []).map((/** @type {any} */ one) => one[rate]);
    return Math.min(1.3, Math.max(...values, ...after) + 0.1);
  };
  // Names stand beside their marks, and take more of a narrow picture.
  const wider = width < 420 ? 1.3 : 1;
  return { right: wider * top("x", "generalized_fpr"), top: top("y", "generalized_fnr") };
}

/** Where the cost is the one to reach: a line, or for a weighted cost a curve over base rates.
 * @param {any} found
 * @param {{right: number, top: number}} bounds
 * @param {any} look */
function levelLine({ f, tally }, bounds, look) {
  /** @param {{x: number, y: number}[]} points */
  const colored = (points) => points.map((point, order) => ({ ...point, order, color: look.ink }));
  if (isPerGroup(f.cost)) return [];
  if (f.cost.kind === "weighted") return colored(levelCurve(f.cost, f.goal));
  const [a, b] = coefficients(f.cost, tally.groups[0], 0.5);
  const [x, y] = [f.goal / a, f.goal / b];
  if (b === 0) return colored([{ x, y: 0 }, { x, y: bounds.top }]);
  if (a === 0) return colored([{ x: 0, y }, { x: bounds.right, y }]);
  return colored([{ x: 0, y }, { x, y: 0 }]);
}

/** An arrow to where a repair takes a group; its head is turned the way it points.
 * @param {any} now
 * @param {any} after
 * @param {any} base
 * @param {{right: number, top: number}} bounds
 * @param {{width: number, height: number}} size
 * @param {any[] | undefined} heads */
function arrowOf(now, after, base, bounds, size, heads) {
  const end = { x: after.generalized_fpr, y: after.generalized_fnr };
  const right = ((end.x - now.x) / bounds.right) * size.width;
  const up = ((end.y - now.y) / bounds.top) * size.height;
  if (Math.hypot(right, up) < 4) return [];
  const angle = (Math.atan2(right, up) * 180) / Math.PI;
  heads?.push({ ...base, ...end, angle, what: "after the repair" });
  return [{ ...base, ...ends(now, end) }];
}

/** The words in the plane: few, and beside what they are about.
 * @param {any} found
 * @param {any[]} spots
 * @param {{right: number, top: number}} bounds
 * @param {any} look
 * @param {{width: number, height: number, levels?: any[]}} size */
function textsOf({ f, spoken }, spots, bounds, look, size) {
  const plain = { align: "left", dx: 0, dy: 0, weight: 400, color: look.muted };
  // Under the flattest line, as far out as it takes to fit.
  const rise = Math.min(...spots.map(slope)) * (bounds.right / bounds.top) * (size.height / size.width);
  const dx = Math.min(220, Math.max(14, 24 / rise));
  const texts = [{ ...plain, x: 0, y: 0, dx, dy: -8, text: "perfect scores" }];
  texts.push({ ...plain, ...freeEnd(spots, bounds, size), text: "no information" });
  const blocked = f.unreachable.length ? blockedOf(f) : undefined;
  if (spots.length <= 4) {
    const order = spots.map((_, i) => i).sort((a, b) => slope(spots[b]) - slope(spots[a]));
    order.forEach((i, rank) => {
      const left = rank < order.length / 2;
      texts.push({
        ...plain, ...spots[i].now, align: left ? "right" : "left", dx: left ? -13 : 13, dy: left ? -10 : 18,
        text: short(spoken[i]), weight: 600, color: look.ink,
      });
    });
  }
  if (blocked !== undefined && spots[blocked].needed) {
    const { trivial, needed } = spots[blocked];
    texts.push(
      { ...plain, ...trivial, align: "right", dx: -14, dy: -2, text: "its line ends here" },
      {
        ...plain, ...needed, align: "right", dx: -14, dy: 0, text: "out of reach", weight: 600,
        color: look.alert,
      },
    );
  }
  return texts;
}

/** The end of the diagonal that is further from the groups, with room for a text beside it.
 * @param {any[]} spots
 * @param {{right: number, top: number}} bounds
 * @param {{width: number, levels?: any[]}} size */
function freeEnd(spots, bounds, { width, levels = [] }) {
  const start = Math.max(0, 1 - bounds.top) + 0.03;
  const end = Math.min(1, bounds.right) - 0.03;
  const wide = (110 / Math.max(width, 200)) * bounds.right;
  /** @param {number} x */
  const room = (x) => Math.min(...spots.map((spot) => Math.abs(spot.trivial.x - x)));
  const isStruck = isCrossed(levels, start, start + wide, 1 - start);
  const isFree = !isCrossed(levels, end - wide, end, 1 - end);
  // Past the line that strikes it out there may be room too, and no names are above the diagonal.
  const past = Math.max(...levels.map((point) => point.x)) + 0.04;
  if (isStruck && past + wide < bounds.right) return { x: past, y: 1 - past, align: "left", dx: 8, dy: -4 };
  if (isStruck && isFree ? false : room(start) >= room(end) || !isFree) {
    return { x: start, y: 1 - start, align: "left", dx: 12, dy: -2 };
  }
  return { x: end, y: 1 - end, align: "right", dx: -10, dy: 16 };
}

/** Whether a line goes through a stretch at a height.
 * @param {any[]} line
 * @param {number} low
 * @param {number} high
 * @param {number} y */
function isCrossed(line, low, high, y) {
  const near = 0.06;
  return line.slice(1).some((b, i) => {
    const a = line[i];
    const isBeside = Math.max(a.x, b.x) < low || Math.min(a.x, b.x) > high;
    const isAway = Math.max(a.y, b.y) < y - near || Math.min(a.y, b.y) > y + near;
    return !isBeside && !isAway;
  });
}

/** @param {any} spot */
function slope(spot) {
  return spot.trivial.y / spot.trivial.x;
}

/** What scores say beside what came true, for one group.
 * @param {any[]} bins of the model's reliability
 * @param {string} color
 * @param {any} look
 * @returns {Datasets} */
export function reliabilityFigure(bins, color, look) {
  const all = bins.reduce((total, bin) => total + bin.n, 0);
  const most = Math.max(...bins.map((bin) => bin.n / all));
  return {
    diagonal: [{ x: 0, y: 0, x2: 1, y2: 1, color: look.muted }],
    bars: bins.map((bin) => ({ x: bin.lo, x2: bin.hi, y: (0.3 * bin.n) / all / most, y2: 0, color })),
    whiskers: bins
      .filter((bin) => Number.isFinite(bin.low))
      .map((bin) => ({ x: bin.mean_score, y: bin.low, y2: bin.high, color })),
    bins: bins.map((bin) => ({
      x: bin.mean_score, y: bin.mean_label, n: bin.n, color,
      range: `${bin.lo.toFixed(1)} to ${bin.hi.toFixed(1)}`,
    })),
  };
}
