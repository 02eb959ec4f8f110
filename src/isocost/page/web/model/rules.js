/** @file Rules: the one format of every repair, what a rule will do and to whom, withholding, and command lines. */

import { at, keyOf, sum } from "./numbers.js";
import { binOf, decides, firstBin, straddles, withCells } from "./tally.js";
import { costFields, costText, isPerGroup } from "./costs.js";
import { baseRate, feasibility, positionOf } from "./measures.js";

/** @import {Cell, Tally} from "./tally.js" */
/** @import {Cost, CostFields} from "./costs.js" */
/** @import {Group} from "./numbers.js" */

/** How far 1 - cut may be from a cut and still be it: 1 - 0.7 is not the double 0.3. */
const NEAR_CUT = 1e-12;

/** A score of the group in [lo, hi), the last hi included, becomes `value` or, mirrored, 1 - score;
 * or it follows a line that leads from `value` at lo to `end` at hi; or it is no more: who has it is handed over.
 * @typedef {{group: Group, lo: number, hi: number, action: "set" | "mirror" | "line" | "defer", value: number | null,
 *   probability: number, end?: number}} Row */

/** What a rule is to be held to; see Python's Promise.
 * @typedef {{equal: Record<string, number>, asked: Record<string, number>, calibrated: boolean, coin: boolean,
 *   threshold: number | null, floor: Record<string, number>, handed_over: [Group, number][]}} Promised */

/** A rule as Python's Rule.to_json writes it.
 * @typedef {{format: "isocost-rule", version: 1, made_by: string, method: string, cost: CostFields | null, settings:
 *   Record<string, unknown>, coin: {scheme: string, salt: string}, groups: Group[], fitted: Group[], rows: Row[],
 *   notes: string[], promise: Promised, made_from: Record<string, unknown>}} Rule */

/** The promise of nothing, as Python's Promise(). @type {Promised} */
const NOTHING = { equal: {}, asked: {}, calibrated: false, coin: true, threshold: null, floor: {}, handed_over: [] };

/** Rows of one interval, which share a coin.
 * @typedef {{lo: number, hi: number, rows: Row[]}} Segment */

/** A rule, with all that its format asks for; groups that the page does not hold are in it without rows.
 * @param {Tally} tally
 * @param {{method: string, cost?: Cost, settings: Record<string, unknown>, rows: Row[],
 *   notes: string[], salt?: string, promise?: Promised}} parts
 * @returns {Rule} */
export function makeRule(tally, { method, cost, settings, rows, notes, salt = "isocost", promise = NOTHING }) {
  const own = tally.groups.map((group, index) => {
    const sums = at(tally.totals, index);
    return { group, n: sums.n[0] + sums.n[1], base_rate: baseRate(sums) };
  });
  const all = tally.roster.map((one) => (typeof one === "number" ? at(own, one) : one));
  const known = all.filter(({ n }) => n !== undefined);
  return {
    format: "isocost-rule", version: 1, made_by: `isocost ${tally.isocost}`,
    method, cost: cost ? costFields(cost) : null, settings, coin: { scheme: "md5-52", salt },
    groups: all.map(({ group }) => group), fitted: tally.groups, rows, notes: [...notes, ...tally.rule_notes], promise,
    made_from: { reading: tally.reading, n: sum(known.map(({ n = 0 }) => n)), groups: known },
  };
}

/** @param {Rule} rule @param {Group} group @returns {Segment[]} */
function segmentsOf(rule, group) {
  const key = keyOf(group);
  /** @type {Map<string, Segment>} */
  const segments = new Map();
  for (const row of rule.rows) {
    if (keyOf(row.group) !== key) continue;
    const name = `${row.lo} ${row.hi}`;
    const segment = segments.get(name) ?? { lo: row.lo, hi: row.hi, rows: [] };
    segment.rows.push(row);
    segments.set(name, segment);
  }
  return [...segments.values()].sort((a, b) => a.lo - b.lo || a.hi - b.hi);
}

/** The bins of a segment, up to, not including, the last; where it ends inside a bin there is no closed form.
 * @param {Tally} tally @param {{lo: number, hi: number}} segment @returns {[number, number]} */
function binsOf({ cuts }, { lo, hi }) {
  const [first, last] = [firstBin(cuts, lo), firstBin(cuts, hi)];
  if (first < 0 || last < 0) throw new Error(`The rule's interval from ${lo} to ${hi} ends inside a bin.`);
  return [first, last];
}

/** The mean score of a cell, inside its bins whatever the rounding.
 * @param {Cell} cell @param {number[]} cuts @returns {number} */
function cellMean(cell, cuts) {
  const low = at(cuts, cell.first);
  const mean = positionOf(cell, cuts);
  // A sum of equal scores may round: 0.3 three times is not 0.9.
  return mean - low < 1e-12 ? low : mean;
}

/** How steep a line is.
 * @param {Row} row @returns {number} */
function slopeOf(row) {
  return (Number(row.end) - Number(row.value)) / (row.hi - row.lo);
}

/** @param {Row} row @param {number} score @returns {number} */
function scoreAfter(row, score) {
  if (row.value === null) return 1 - score;
  if (row.end === undefined) return row.value;
  return Math.min(Math.max(row.value + slopeOf(row) * (score - row.lo), 0), 1);
}

/** Part of a cell with one fate: what becomes of it, its share, and whether a coin decides.
 * @typedef {{cell: Cell, row: Row | null, after: Cell, share: number, coin: boolean}} Portion */

/** Every fate that the people of a tally can have.
 * @param {Rule} rule @param {Tally} tally @returns {Portion[]} */
function portionsOf(rule, tally) {
  const known = new Set(rule.groups.map(keyOf));
  const strange = tally.groups.findIndex((group) => !known.has(keyOf(group)));
  if (strange >= 0) throw new Error(`The rule does not know ${at(tally.names, strange)}.`);
  const segments = tally.groups.map((group) =>
    segmentsOf(rule, group).map(({ rows, ...ends }) => ({ rows, bins: binsOf(tally, ends) })),
  );
  return tally.cells.flatMap((cell) => {
    const own = at(segments, cell.group);
    if (own.some(({ bins }) => bins.some((bin) => straddles(cell, bin)))) {
      throw new Error("An interval of the rule ends inside bins that are merged on this page.");
    }
    const rows = own.find(({ bins: [first, last] }) => cell.bin >= first && cell.bin < last)?.rows ?? [];
    const coin = rows.some(({ probability }) => probability > 0 && probability < 1);
    const left = 1 - sum(rows.map(({ probability }) => probability));
    return [
      ...rows.map((row) => ({ cell, row, after: movedCell(cell, row, tally.cuts), share: row.probability, coin })),
      { cell, row: null, after: cell, share: left < 1e-15 ? 0 : left, coin },
    ];
  });
}

/** What the rule will do to these scores on average over the coin, in closed form.
 * @param {Rule} rule @param {Tally} tally @returns {Tally} */
export function expected(rule, tally) {
  const decided = portionsOf(rule, tally).filter(({ row }) => row?.action !== "defer");
  const moved = decided.flatMap(({ cell, row, share }) =>
    (row === null ? [cell] : movedCells(cell, row, tally)).map((one) => shareOf(one, share)),
  );
  return withCells(tally, moved);
}

/** A cell after a row was applied to it.
 *
 * Its bin is that of the moved mean, not that of the moved bin: 0.5 mirrored stays in its bin.
 * @param {Cell} cell @param {Row} row @param {number[]} cuts @returns {Cell} */
function movedCell(cell, row, cuts) {
  if (row.action === "defer") return cell;
  const mean = scoreAfter(row, cellMean(cell, cuts));
  const bin = binOf(cuts, mean);
  const after = { ...cell, bin, first: bin, end: bin + 1, ...movedSums(cell, row, mean) };
  const constant = row.value !== null && row.end === undefined;
  if (constant || cell.end - cell.first === 1) return after;
  const ends = [cell.first, cell.end].map((end) => scoreAfter(row, at(cuts, end)));
  const low = binOf(cuts, Math.min(...ends) + NEAR_CUT);
  const high = binOf(cuts, Math.max(...ends) - NEAR_CUT);
  return { ...after, first: Math.min(low, bin), end: Math.max(high, bin) + 1 };
}

/** @param {Cell} cell @param {Row} row @param {number} mean @returns {{wh: number, wh2: number}} */
function movedSums(cell, row, mean) {
  if (row.value === null) return { wh: cell.w - cell.wh, wh2: cell.w - 2 * cell.wh + cell.wh2 };
  return { wh: cell.w * mean, wh2: cell.w * (mean * mean + varianceAfter(cell, row, mean)) };
}

/** @param {Cell} cell @param {Row} row @param {number} mean @returns {number} */
function varianceAfter(cell, row, mean) {
  if (row.end === undefined) return 0;
  const variance = slopeOf(row) ** 2 * (cell.wh2 / cell.w - (cell.wh / cell.w) ** 2);
  return Math.min(Math.max(variance, 0), mean * (1 - mean));
}

/** A cell after a row was applied to it, in two where a line spreads it over several bins.
 *
 * The two have the same mean and variance together; see Python's rows.
 * @param {Cell} cell @param {Row} row @param {Tally} tally @returns {Cell[]} */
function movedCells(cell, row, { cuts, bins }) {
  const whole = movedCell(cell, row, cuts);
  const mean = scoreAfter(row, cellMean(cell, cuts));
  const variance = varianceAfter(cell, row, mean);
  const room = (mean - at(cuts, whole.bin)) * (at(cuts, whole.bin + 1) - mean) + 1 / bins ** 2;
  if (variance <= room || cell.end - cell.first > 1) return [whole];
  const deviation = Math.sqrt(variance);
  const low = mean + deviation > 1 ? mean - variance / (1 - mean) : Math.max(mean - deviation, 0);
  const high = Math.min(mean + variance / (mean - low), 1);
  const share = (high - mean) / (high - low);
  return [shareOf(atScore(cell, low, cuts), share), shareOf(atScore(cell, high, cuts), 1 - share)];
}

/** @param {Cell} cell @param {number} score @param {number[]} cuts @returns {Cell} */
function atScore(cell, score, cuts) {
  const bin = binOf(cuts, score);
  return { ...cell, bin, first: bin, end: bin + 1, wh: cell.w * score, wh2: cell.w * score * score };
}

/** @param {Cell} cell @param {number} share @returns {Cell} */
function shareOf(cell, share) {
  const { n, w, w2, wh, wh2 } = cell;
  return { ...cell, n: n * share, w: w * share, w2: w2 * share, wh: wh * share, wh2: wh2 * share };
}

/** What a rule does to people, on average over the coin; decisions are NaN where it is not known who is on which side.
 * @typedef {{changed: number, by_coin: number, handed_over: number, decisions: number}} Changes */

/** A score that moves by no more than this has not moved. */
const SAME = 1e-12;

/** @param {Tally} tally @param {Rule} rule @param {number} [threshold]
 * @returns {{overall: Changes, groups: (Changes & {group: Group, name: string})[]}} */
export function changes(tally, rule, threshold = 0.5) {
  const portions = portionsOf(rule, tally);
  const first = firstBin(tally.cuts, threshold);
  return {
    overall: changesOf(portions, first, decides(tally, threshold)),
    groups: tally.groups.map((group, index) => {
      const own = portions.filter(({ cell }) => cell.group === index);
      return { group, name: at(tally.names, index), ...changesOf(own, first, decides(tally, threshold, index)) };
    }),
  };
}

/** @param {Portion[]} portions
 * @param {number} first the first bin at or above the threshold
 * @param {boolean} isDecided @returns {Changes} */
function changesOf(portions, first, isDecided) {
  /** @param {Portion[]} some */
  const weight = (some) => sum(some.map(({ cell, share }) => cell.w * share));
  const total = weight(portions);
  // Merged bins may come to lie across the threshold.
  const isKnown = isDecided && !portions.some(({ after }) => straddles(after, first));
  const turned = portions.filter(({ cell, after }) => cell.bin >= first !== after.bin >= first);
  return {
    // The old score is the mean of the cell.
    changed: weight(portions.filter(({ cell, after }) => Math.abs(after.wh - cell.wh) / cell.w > SAME)) / total,
    handed_over: weight(portions.filter(({ row }) => row?.action === "defer")) / total,
    by_coin: weight(portions.filter(({ coin }) => coin)) / total,
    decisions: isKnown ? weight(turned) / total : Number.NaN,
  };
}

/** Algorithm 1: replace a share alpha of each group's scores, chosen by a coin, by the base rate.
 * @param {Tally} tally @param {{cost: Cost, tolerance?: number}} settings
 * @returns {Rule | null} null if it is not feasible */
export function withhold(tally, { cost, tolerance = 0 }) {
  const reach = feasibility(tally, cost, tolerance);
  if (!reach.feasible) return null;
  /** @type {Row[]} */
  const rows = reach.changed.map((index) => ({
    group: at(tally.groups, index), lo: 0, hi: 1,
    action: "set", value: baseRate(at(tally.totals, index)), probability: at(reach.alpha, index),
  }));
  const settings = { tolerance, infeasible: "raise" };
  const coin = rows.some(({ probability }) => probability > 0 && probability < 1);
  const promise = {
    equal: { cost: tolerance }, asked: { cost: tolerance }, calibrated: true, coin, threshold: null, floor: {}, handed_over: []
  };
  return makeRule(tally, { method: "withhold", cost, settings, rows, notes: [], promise });
}

/** What the page is set to: `method` as the command line calls the repair, and its `goal`, where rates need no tolerance;
 * `off`, the places of the groups that are switched off.
 * @typedef {{command: "audit" | "fit", cost: Cost, threshold?: number, tolerance?: number, method?: string,
 *   goal?: "cost" | "rates", share?: number | string | null, off?: number[]}} CommandSettings */

/** Parts of command lines that Python wrote for a shell: the data and how they are read, and a group left out.
 * @typedef {{read: string, drop: string[]}} Prepared */

/** The command line; null for a cost per group, which it cannot express.
 * @param {CommandSettings} settings @param {Prepared} prepared @returns {string | null} */
export function commandLine(settings, { read, drop }) {
  const { command, cost, threshold = 0.5, tolerance = 0 } = settings;
  const isFit = command === "fit";
  const usesCost = !isFit || settings.goal !== "rates";
  if (usesCost && isPerGroup(cost)) return null;
  /** @type {[string, string | number | null | undefined][]} */
  const options = [
    ["method", isFit ? (settings.method ?? "withhold") : null],
    ["share", settings.share], ["cost", usesCost ? costText(cost) : null],
    ["threshold", threshold], ["tolerance", usesCost ? tolerance : null],
  ];
  const words = options.flatMap(([name, value]) => (value === null || value === undefined ? [] : [`--${name}=${value}`]));
  const dropped = (settings.off ?? []).map((place) => drop[place] ?? "");
  return ["isocost", command, read, ...dropped, ...words, ...(isFit ? ["--output=rule.json"] : [])].join(" ");
}
