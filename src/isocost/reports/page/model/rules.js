/** @file Rules: the one format of every repair, and what a rule will do. */

import { at, sum } from "./numbers.js";
import { keyOf } from "./groups.js";
import { binOf, firstBin, rowsOf, straddles, withCells } from "./tally.js";
import { costFields } from "./costs.js";
import { baseRate, positionOf } from "./measures.js";

/** @import {Cell, Tally} from "./tally.js" */
/** @import {Cost, CostFields} from "./costs.js" */
/** @import {Group} from "./groups.js" */

/** How far 1 - cut may be from a cut and still be it: 1 - 0.7 is not the double 0.3. */
const NEAR_CUT = 1e-12;

/** A score of the group in [lo, hi), the last hi included, becomes `value` or, mirrored, 1 - score.
 * @typedef {object} Row
 * @property {Group} group
 * @property {number} lo
 * @property {number} hi
 * @property {"set" | "mirror"} action
 * @property {number | null} value
 * @property {number} probability */

/** What a rule is to be held to; see Python's Promise.
 * @typedef {object} Promised
 * @property {Record<string, number>} equal
 * @property {Record<string, number>} asked
 * @property {boolean} calibrated
 * @property {boolean} coin
 * @property {number | null} threshold */

/** A rule as Python's Rule.to_json writes it.
 * @typedef {object} Rule
 * @property {"isocost-rule"} format
 * @property {1} version
 * @property {string} made_by
 * @property {string} method
 * @property {CostFields | null} cost
 * @property {Record<string, unknown>} settings
 * @property {{scheme: string, salt: string}} coin
 * @property {Group[]} groups
 * @property {Row[]} rows
 * @property {string[]} notes
 * @property {Promised} [promise]
 * @property {Record<string, unknown>} made_from */

/** Rows of one interval, which share a coin.
 * @typedef {{lo: number, hi: number, rows: Row[]}} Segment */

/** A rule, with all that its format asks for.
 * @param {Tally} tally
 * @param {{method: string, cost?: Cost, settings: Record<string, unknown>, rows: Row[],
 *   notes: string[], salt?: string, promise?: Promised}} parts
 * @returns {Rule} */
export function makeRule(tally, parts) {
  const { groups, totals } = tally;
  return {
    format: "isocost-rule",
    version: 1,
    made_by: `isocost ${tally.isocost}`,
    method: parts.method,
    cost: parts.cost ? costFields(parts.cost) : null,
    settings: parts.settings,
    coin: { scheme: "md5-52", salt: parts.salt ?? "isocost" },
    groups,
    rows: parts.rows,
    notes: parts.notes,
    ...(parts.promise ? { promise: parts.promise } : {}),
    made_from: {
      columns: tally.columns,
      n: rowsOf(tally),
      groups: groups.map((group, place) => {
        const sums = at(totals, place);
        return { group, n: sums.n[0] + sums.n[1], base_rate: baseRate(sums) };
      }),
    },
  };
}

/** The intervals of one group, from low to high.
 * @param {Rule} rule @param {Group} group @returns {Segment[]} */
function segmentsOf(rule, group) {
  const key = keyOf(group);
  /** @type {Map<string, Segment>} */
  const found = new Map();
  for (const row of rule.rows) {
    if (keyOf(row.group) !== key) continue;
    const name = `${row.lo} ${row.hi}`;
    const segment = found.get(name) ?? { lo: row.lo, hi: row.hi, rows: [] };
    segment.rows.push(row);
    found.set(name, segment);
  }
  return [...found.values()].sort((a, b) => a.lo - b.lo || a.hi - b.hi);
}

/** The bins of a segment, from the first up to, not including, the last.
 *
 * Ends that are no cuts are an error: there is no closed form.
 * @param {Tally} tally @param {{lo: number, hi: number}} segment @returns {[number, number]} */
function binsOf({ cuts }, { lo, hi }) {
  const [first, last] = [firstBin(cuts, lo), firstBin(cuts, hi)];
  if (first < 0 || last < 0) throw new Error(`The rule's interval from ${lo} to ${hi} ends inside a bin.`);
  return [first, last];
}

/** The bin that a cell comes to when its scores h become 1 - h.
 *
 * The bin of the mirrored mean, not the opposite bin: 0.5 stays in its bin.
 * @param {Cell} cell @param {number[]} cuts @returns {number} */
function mirroredBin(cell, cuts) {
  const low = at(cuts, cell.first);
  const mean = positionOf(cell, cuts);
  // A sum of equal scores may round: 0.3 three times is not 0.9.
  return binOf(cuts, 1 - (mean - low < 1e-12 ? low : mean));
}

/** Part of a cell with one fate: what becomes of it, its share, and whether a coin decides.
 * @typedef {{cell: Cell, after: Cell, share: number, coin: boolean}} Portion */

/** Every fate that the people of a tally can have.
 * @param {Rule} rule @param {Tally} tally @returns {Portion[]} */
export function portionsOf(rule, tally) {
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
      ...rows.map((row) => ({ cell, after: movedCell(cell, row, tally.cuts), share: row.probability, coin })),
      { cell, after: cell, share: left < 1e-15 ? 0 : left, coin },
    ];
  });
}

/** What the rule will do to these scores on average over the coin, in closed form.
 * @param {Rule} rule @param {Tally} tally @returns {Tally} */
export function expected(rule, tally) {
  return withCells(tally, portionsOf(rule, tally).map(({ after, share }) => shareOf(after, share)));
}

/** A cell after a row was applied to it.
 * @param {Cell} cell @param {Row} row @param {number[]} cuts @returns {Cell} */
function movedCell(cell, row, cuts) {
  if (row.value !== null) {
    const bin = binOf(cuts, row.value);
    const [wh, wh2] = [cell.w * row.value, cell.w * (row.value * row.value)];
    return { ...cell, bin, first: bin, end: bin + 1, wh, wh2 };
  }
  const bin = mirroredBin(cell, cuts);
  const [wh, wh2] = [cell.w - cell.wh, cell.w - 2 * cell.wh + cell.wh2];
  if (cell.end - cell.first === 1) return { ...cell, bin, first: bin, end: bin + 1, wh, wh2 };
  const low = binOf(cuts, 1 - at(cuts, cell.end) + NEAR_CUT);
  const high = binOf(cuts, 1 - at(cuts, cell.first) - NEAR_CUT);
  return { ...cell, bin, first: Math.min(low, bin), end: Math.max(high, bin) + 1, wh, wh2 };
}

/** @param {Cell} cell @param {number} share @returns {Cell} */
function shareOf(cell, share) {
  const { n, w, w2, wh, wh2 } = cell;
  return { ...cell, n: n * share, w: w * share, w2: w2 * share, wh: wh * share, wh2: wh2 * share };
}
