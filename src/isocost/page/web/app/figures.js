/** @file The pictures: what each draws at the present settings, tells in words, and saves as numbers. */

import { figuresFor, fill, isAimed, isMany, NARROW, plainText, short } from "./say.js";
import { crowdOf, lengthOf, namesFor, placed } from "./placing.js";
import { planeFigure } from "./plane.js";

/** @typedef {Record<string, any[]>} Datasets */

/** A picture: its parts, each with the data, limits and size of a chart, and what it draws in words and numbers.  A
 * part has a title, and is the chart of `costs`, if there are several; `isPartial` if groups are missing.
 * @typedef {{parts: {data: Datasets, signals: Record<string, number>, size: any, title?: string}[], told: string,
 *   rows: (string | number)[][], isPartial?: boolean}} Picture */

/** The pictures by the name of their chart, from the results, the look of the page, and a width in pixels.
 * @type {Record<string, (results: any, look: any, width: number) => Picture>} */
export const FIGURES = {
  costs: (results, look, width) => {
    const { f, chosen } = results;
    const { plain } = figuresFor(results);
    const told = toldOf(results, (i) => `cost ${plain(f.costs[i])}, at most ${plain(f.trivial_costs[i])} if calibrated`);
    const goal = isAimed(chosen) ? ` To match: ${plain(f.goal)}.` : "";
    return {
      parts: [costsFigure(results, look, width)],
      told: `Costs of errors. ${told.join("; ")}.${goal}${afterTold(results, (one) => `cost ${plain(one.cost)}`)}`,
      rows: tableOf(results, {
        cost: (i) => f.costs[i], highest_possible_cost: (i) => f.trivial_costs[i], cost_after_repair: (i) => chosen?.after?.[i].cost ?? Number.NaN,
      }),
    };
  },

  plane: (results, look, width) => {
    const { m } = results;
    const { plain } = figuresFor(results);
    const rates = (/** @type {any} */ one) => `false alarms ${plain(one.generalized_fpr)}, misses ${plain(one.generalized_fnr)}`;
    const told = toldOf(results, (i) => `${rates(m[i])}; its line ends at ${plain(m[i].base_rate)}, ${plain(1 - m[i].base_rate)}`);
    return {
      parts: isMany(results) ? ratesFigures(results, look, width) : [framed(planeFigure, results, look, width, 440)],
      told: `The plane of both rates. ${told.join(". ")}.${afterTold(results, rates)}`,
      rows: tableOf(results, {
        generalized_fpr: (i) => m[i].generalized_fpr, generalized_fnr: (i) => m[i].generalized_fnr, base_rate: (i) => m[i].base_rate,
      }),
    };
  },

  values: (results, look, width) => {
    const { m, sides, shown } = results;
    const { plain } = figuresFor(results);
    const told = toldOf(results, (i) =>
      `positive among the selected ${plain(m[i].ppv)}, scores predict ${plain(sides[i].selected)}; ` +
      `among the passed over ${plain(m[i].false_omission_rate)}, scores predict ${plain(sides[i].passed)}`);
    const parts = isMany(results) ? valuesFigures(results, look, width) : [framed(valuesFigure, results, look, width, 420)];
    const drawn = parts[0]?.data["groups"] ?? parts[0]?.data["points"] ?? [];
    return {
      parts,
      told: `${told.join(". ")}.`,
      rows: tableOf(results, {
        ppv: (i) => m[i].ppv, predicted_ppv: (i) => sides[i].selected,
        false_omission_rate: (i) => m[i].false_omission_rate, predicted_false_omission_rate: (i) => sides[i].passed,
      }),
      isPartial: drawn.length < shown.length,
    };
  },
};

/** @param {any} results @param {(index: number) => string} tell @returns {string[]} */
function toldOf({ spoken }, tell) {
  return spoken.map((/** @type {string} */ name, /** @type {number} */ i) => `${name}: ${tell(i)}`);
}

/** Where the chosen repair takes the groups; nothing if there is none.
 * @param {any} results @param {(one: any) => string} tell */
function afterTold(results, tell) {
  const { chosen, words } = results;
  if (!chosen?.after) return "";
  const after = toldOf(results, (i) => tell(chosen.after[i])).join("; ");
  return ` ${plainText(fill(words.after_told, { repair: { name: chosen.label }, after }))}`;
}

/** @param {any} results @param {Record<string, (i: number) => number>} columns @returns {(string | number)[][]} */
function tableOf({ names }, columns) {
  const rows = names.map((/** @type {string} */ name, /** @type {number} */ i) => [name, ...Object.values(columns).map((of) => of(i))]);
  return [["group", ...Object.keys(columns)], ...rows];
}

/** @param {(results: any, look: any, size: any) => {data: Datasets, signals: Record<string, number>}} figure
 * @param {any} results @param {any} look @param {number} width of the whole @param {number} height */
function framed(figure, results, look, width, height) {
  const padding = { left: 48, right: 16, top: 42, bottom: 52 };
  const size = { width: width - padding.left - padding.right, height: height - padding.top - padding.bottom, padding };
  return { ...figure(results, look, size), size };
}

/** @param {string} key @param {any} results @param {number} i */
function intervalOf(key, results, i) {
  return results.own.intervals[results.shown[i]]?.[key] ?? null;
}

/** What rows show of the groups, from the one with the highest number in `order`: a value; as far as it can go (`end`);
 * after a repair, or as scores predict it (`hollow`); its interval; and whether the goal is out of its reach (`isBlocked`).
 * @param {any} results @param {any} look @param {(i: number) => any} tell @param {number[]} [order] */
function rowsWith({ spoken, shown }, look, tell, order) {
  const rows = spoken.map((/** @type {string} */ name, /** @type {number} */ i) => ({
    name, color: look.colors[shown[i]], shape: look.shapes[shown[i]], ...tell(i), order: order?.[i] ?? -i,
  }));
  return rows.filter((/** @type {any} */ row) => Number.isFinite(row.value + row.order)).sort((/** @type {any} */ a, /** @type {any} */ b) => b.order - a.order);
}

/** Where each group's cost is, how far it can be raised, and the line it has to reach.
 * @param {any} results @param {any} look colours and shapes @param {number} width in pixels */
export function costsFigure(results, look, width) {
  const { f, chosen } = results;
  const { plain } = figuresFor(results);
  const isDense = isMany(results);
  const rows = rowsWith(results, look, (i) => ({
    value: f.costs[i], hollow: chosen?.after?.[i].cost, interval: isDense ? intervalOf("cost", results, i) : null,
    end: f.trivial_costs[i] > f.costs[i] ? f.trivial_costs[i] : undefined,
    isBlocked: isAimed(chosen) && f.unreachable.includes(i),
  }), isDense ? f.costs : undefined);
  const right = 1.1 * Math.max(f.goal, ...rows.flatMap((/** @type {any} */ row) => [row.value, row.end ?? 0, row.hollow ?? 0]));
  const text = f.tolerance ? `cost to reach: ${plain(f.goal)}` : `to match: ${plain(f.goal)}`;
  const goal = isAimed(chosen) && (f.changed.length || !f.feasible) ? { x: f.goal, text } : null;
  return rowsFigure(rows, { left: 0, right }, look, { width, goal, plain, isDense, isNamed: true, isNarrow: width < NARROW });
}

/** Both error rates of many groups, in the order of their costs: the plane as two columns of dots.
 * @param {any} results @param {any} look @param {number} width */
function ratesFigures(results, look, width) {
  const { m, f, chosen } = results;
  return pairOf(["generalized_fpr", "generalized_fnr"].map((key, side) => rowsWith(results, look, (i) => ({
    value: m[i][key], end: side ? 1 - m[i].base_rate : m[i].base_rate, hollow: chosen?.after?.[i][key], interval: intervalOf(key, results, i),
  }), f.costs)), ["False alarms", "Misses"], results, look, width);
}

/** Both predictive values of many groups, in the order of the first.
 * @param {any} results @param {any} look @param {number} width */
export function valuesFigures(results, look, width) {
  const { m, sides, state } = results;
  const order = m.map((/** @type {any} */ one) => one.ppv);
  return pairOf([["ppv", "selected"], ["false_omission_rate", "passed"]].map(([key = "", side = ""]) => rowsWith(results, look, (i) => ({
    value: m[i][key], hollow: sides[i][side], interval: intervalOf(key, results, i),
  }), order)), ["Positive among the selected", "Positive among the passed over"], results, look, width, { x: state.threshold, text: "threshold" });
}

/** Two pictures of rows side by side; the first has the names.
 * @param {any[][]} columns @param {string[]} titles @param {any} results @param {any} look @param {number} width @param {any} [goal] */
function pairOf(columns, titles, results, look, width, goal) {
  const { shown } = results;
  const options = { plain: figuresFor(results).plain, isDense: true, isNarrow: width < NARROW, count: shown.length };
  const names = roomOf(columns[0] ?? [], look, { ...options, isNamed: true }).padding.left;
  return columns.map((rows, i) => {
    const values = rows.flatMap((row) => [row.value, row.end, row.hollow, ...(row.interval ?? [])]).filter(Number.isFinite);
    const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    const pad = Math.max(0.06 * (high - low), 0.0005);
    const ends = { left: Math.max(low - pad, 0), right: Math.min(high + pad, 1) };
    const own = goal && goal.x > ends.left && goal.x < ends.right ? goal : null;
    const figure = rowsFigure(rows, ends, look, { ...options, width: (width - names - 12) / 2 + (i ? 0 : names), goal: own, isNamed: i === 0 });
    return { ...figure, title: titles[i] ?? "" };
  });
}

/** @param {any[]} rows @param {any} look @param {any} options with the `room` that names have before the marks */
function roomOf(rows, look, { isDense, isNamed, isNarrow, room = 0 }) {
  const longest = Math.max(0, ...rows.map((row) => lengthOf(short(row.name), 600, look)));
  const isAbove = isDense ? isNarrow : room < longest + 30;
  const left = isDense && isNamed && !isAbove ? longest + 18 : 8;
  return { isAbove, pitch: isDense ? (isAbove ? 31 : 22) : isAbove ? 80 : 66, padding: { left, right: 14, top: 4, bottom: 24 } };
}

/** Rows of groups: a mark, how far it can go, its interval, where a repair takes it, and a goal.
 * @param {any[]} rows @param {{left: number, right: number}} ends @param {any} look @param {any} options
 * @returns {{data: Datasets, signals: Record<string, number>, size: any}} */
function rowsFigure(rows, ends, look, { goal, width, count = rows.length, ...options }) {
  const scale = (width - 22) / (ends.right - ends.left);
  const { isAbove, pitch, padding } = roomOf(rows, look, { ...options, room: Math.min(...rows.map((row) => (row.value - ends.left) * scale)) });
  const above = options.isDense && isAbove ? 0.4 : 0.1;
  const signals = { ...ends, low: -0.6, high: count + above };
  const size = { width: width - padding.left - padding.right, height: pitch * (count + 0.6 + above), padding };
  const [thick, area] = options.isDense ? [6, 70] : [10, 190];
  /** @type {Datasets} */
  const data = { spans: [], missing: [], whiskers: [], points: [], ends: [], after: [], target: [] };
  if (goal) data["target"]?.push({ ...goal, y: signals.low, y2: signals.high, tip: goal.text, color: look.ink });
  rows.forEach((row, i) => {
    const base = { y: count - 1 - i, name: row.name, color: row.color };
    const point = { ...base, x: row.value, shape: row.shape, area };
    data["points"]?.push(point);
    // Where hardly anything changes, a hollow mark would blur the other.
    if (Math.abs(row.hollow - row.value) * scale > 3) data["after"]?.push({ ...point, x: row.hollow, paper: look.paper });
    if (row.interval) data["whiskers"]?.push({ ...base, x: row.interval[0], x2: row.interval[1] });
    if (row.end !== undefined) {
      const tip = `calibrated scores can get to ${options.plain(row.end)}`;
      data["spans"]?.push({ ...base, x: row.value, x2: row.end, thick, tip });
      data["ends"]?.push({ ...base, x: row.end, long: 2.2 * thick });
    }
    if (!row.isBlocked || !goal) return;
    const top = Math.max(row.value, row.end ?? row.value);
    row.missing = `${options.plain(goal.x - top)} out of reach`;
    data["missing"]?.push({ ...base, x: top, x2: goal.x, color: look.alert, tip: row.missing });
  });
  const frame = { ...signals, width: size.width, height: size.height };
  const crowd = crowdOf(data, frame, { points: 8, after: 8, ends: 8 }, { target: 40, spans: 300, missing: 300 });
  const wanted = wordsOf(rows, goal, look, { ...options, left: ends.left, scale, isAbove, count });
  return { data: { ...data, ...placed(wanted, crowd, look, frame) }, signals, size };
}

/** Names, numbers below their marks, and what is out of reach; where rows are dense, names only.
 * @param {any[]} rows @param {any} goal @param {any} look @param {any} options */
function wordsOf(rows, goal, look, { left, scale, isAbove, isDense, isNamed, count, plain: text }) {
  /** @param {number} x @param {number} y @param {[string, number, number][]} seats */
  const at = (x, y, seats) => seats.map(([align, dx, dy]) => ({ x, y, seat: { align, dx, dy } }));
  const bold = { weight: 600, color: look.ink };
  /** @type {[string, number, number]} */
  const ofName = isAbove ? ["left", 0, isDense ? -13 : -36] : isDense ? ["right", -14, 0] : ["left", 0, 0];
  const names = isNamed ? rows.map((row, i) => ({ ...bold, text: short(row.name), places: at(left, count - 1 - i, [ofName]) })) : [];
  const top = goal ? [{ ...bold, text: goal.text, places: at(goal.x, count - (isDense && isAbove ? 0 : 0.3), [["right", -7, 0], ["left", 7, 0]]) }] : [];
  if (isDense) return [...names, ...top];
  const numbers = rows.flatMap((row, i) => {
    const [y, plain] = [count - 1 - i, { weight: 400, worst: 200 }];
    /** @type {[string, number, number][][]} */
    const [middle = [], before = [], after = []] = [[["center", 0, 20]], [["right", 8, 20], ["right", -5, 20]], [["left", -8, 20], ["left", 5, 20]]];
    const isClose = (row.end - row.value) * scale < 44;
    const ofValue = isClose ? [...before, ...middle, ...after] : [...middle, ...before, ...after];
    return [
      { ...plain, color: look.ink, text: text(row.value), places: at(row.value, y, ofValue) },
      ...(row.end === undefined ? [] : [{ ...plain, color: look.muted, text: text(row.end), places: at(row.end, y, [...middle, ...after, ...before]) }]),
      ...(row.missing ? [{ ...bold, worst: 200, color: look.alert, text: row.missing, places: at(goal.x, y, [["right", -7, -19], ["left", 7, -19], ["left", 7, 0]]) }] : []),
    ];
  });
  return [...names, ...top, ...numbers];
}

/** The floor of the strip of bars below the rates. */
const STRIP = -0.2;

/** @param {any[]} bins of the model's reliability @param {string} color @param {any} look @returns {Datasets} */
export function reliabilityFigure(bins, color, look) {
  const all = bins.reduce((total, bin) => total + bin.n, 0);
  const most = Math.max(...bins.map((bin) => bin.n / all));
  return {
    diagonal: [{ x: 0, y: 0, x2: 1, y2: 1, color: look.muted }],
    bars: bins.map((bin) => ({ x: bin.lo, x2: bin.hi, y: STRIP + (0.15 * bin.n) / all / most, y2: STRIP, color })),
    whiskers: bins.filter((bin) => Number.isFinite(bin.low)).map((bin) => ({ x: bin.mean_score, y: bin.low, y2: bin.high, color })),
    bins: bins.map((bin) => ({ x: bin.mean_score, y: bin.mean_label, n: bin.n, color, range: `${bin.lo.toFixed(1)} to ${bin.hi.toFixed(1)}` })),
  };
}

/** How far beyond the marks, as a share of their range, the corner of calibrated scores may be and still be shown. */
const CORNER = 1.5;

/** Who turned out positive among the passed over (x) and the selected (y), and what scores predict.
 * @param {any} results @param {any} look @param {{width: number, height: number}} size in pixels
 * @returns {{data: Datasets, signals: Record<string, number>}} */
export function valuesFigure(results, look, size) {
  const { state, m, sides, spoken, shown } = results;
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
    data["lines"]?.push({ ...base, x2: mu, y2: mu });
    const [across, up] = [intervalOf("false_omission_rate", results, i), intervalOf("ppv", results, i)];
    if (across && up) data["whiskers"]?.push({ ...base, x: across[0], x2: across[1], y2: y }, { ...base, x2: x, y: up[0], y2: up[1] });
    data["links"]?.push({ ...base, x2: guess.x, y2: guess.y });
    data["base"]?.push({ ...base, x: mu, y: mu, what: "base rate" });
    data["predicted"]?.push({ ...base, ...guess, paper: look.paper, what: "predicted by its own scores" });
    data["groups"]?.push({ ...base, what: "observed" });
  });
  const signals = partShown(data, t);
  const frame = { ...signals, ...size };
  const crowd = crowdOf(data, frame, { groups: 9, predicted: 7, base: 7 }, { whiskers: 30, links: 30, lines: 12 });
  return { data: { ...data, ...placed(namesFor(data["groups"] ?? [], look, frame), crowd, look, frame) }, signals };
}

/** The part of the plane that has the marks, and some of the area of calibrated scores.
 * @param {Datasets} data @param {number} t the threshold */
function partShown(data, t) {
  const marks = ["groups", "predicted", "base", "whiskers"].flatMap((name) => data[name] ?? []);
  /** @param {string} axis @param {boolean} isAbove whether the area begins, and does not end, at the threshold */
  const ends = (axis, isAbove) => {
    const values = marks.flatMap((one) => [one[axis], one[`${axis}2`] ?? one[axis]]).filter(Number.isFinite);
    let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
    const room = CORNER * Math.max(high - low, 0.02);
    if (isAbove ? t >= low - room : t <= high + room) [low, high] = [Math.min(low, t), Math.max(high, t)];
    const pad = Math.max(0.08 * (high - low), 0.002);
    return [Math.max(low - pad, 0), Math.min(high + pad, 1)];
  };
  const [left = 0, right = 1] = ends("x", false);
  const [low = 0, high = 1] = ends("y", true);
  return { left, right, low, high };
}
