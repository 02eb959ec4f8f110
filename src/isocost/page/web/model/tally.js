/** @file The tally: the one small table that everything else is computed from. */

import { addUp, at, countAtMost, sum } from "./numbers.js";

/** @import {Group} from "./numbers.js" */

/** The sums over the people of a group and label in a bin: 1, w, w^2, w h and w h^2.
 *
 * Small bins may have been merged into one before they came here: the people of the cell lie
 * somewhere in the bins from `first` up to, not including, `end`.
 * @typedef {{group: number, label: number, bin: number, first: number, end: number, n: number, w: number, w2: number,
 *   wh: number, wh2: number}} Cell */

/** The sums of one group's negatives and positives.
 * @typedef {{n: [number, number], w: [number, number], wh: [number, number]}} Sums */

/** A row of Python's table of measures: a mean over kinds of people ("tn", "fp", "fn", "tp") of
 * a + b h + c h^2, with (a, b, c) by kind.
 * @typedef {{over: string[], adds: Record<string, [number, number, number]>, uses_threshold: boolean}} Measure */

/** How the data were read: Python's Reading, of which the page knows only the groups left out.
 * @typedef {{dropped_groups?: string[], [field: string]: unknown}} Reading */

/** What a rule says of a group that it was made from.
 * @typedef {{group: Group, n?: number, base_rate?: number}} Known */

/** What Python's payload() writes into the page; `roster` has all groups in their order, as places among `groups` or,
 * of those that the page does not hold, as a rule names them.
 * @typedef {{isocost: string, bins: number, edges: number[], reading: Reading, groups: Group[], names: string[],
 *   cells: Record<string, number[]>, measures: Record<string, Measure>, roster: (number | Known)[],
 *   rule_notes: string[]}} Payload */

/** A payload whose columns are cells, with the cut points between bins and the sums of each group.
 * @typedef {Omit<Payload, "cells"> & {cuts: number[], cells: Cell[], totals: Sums[]}} Tally */

/** @param {Payload} payload @returns {Tally} */
export function readTally(payload) {
  const { cells: columns, bins, edges } = payload;
  /** @param {string} name @param {string} instead */
  const column = (name, instead) => columns[name] ?? columns[instead] ?? [];
  const [group = [], label = [], bin = [], n = [], wh = [], wh2 = []] = ["group", "label", "bin", "n", "wh", "wh2"].map((name) => column(name, ""));
  const [first, w, w2, end] = [column("first", "bin"), column("w", "n"), column("w2", "n"), columns["end"]];
  const cells = bin.map((own, i) => ({
    group: at(group, i), label: at(label, i), bin: own, first: at(first, i), end: end ? at(end, i) : own + 1,
    n: at(n, i), w: at(w, i), w2: at(w2, i), wh: at(wh, i), wh2: at(wh2, i),
  }));
  const totals = totalsOf(cells, payload.groups.length);
  return { ...payload, cuts: cutsOf(bins, edges), cells, totals };
}

/** All cut points from 0 to 1: equal parts, the tenths, further edges.
 * @param {number} bins @param {number[]} edges @returns {number[]} */
function cutsOf(bins, edges) {
  const parts = Array.from({ length: bins + 1 }, (_, i) => i / bins);
  const tenths = Array.from({ length: 9 }, (_, i) => (i + 1) / 10);
  return [...new Set([...parts, ...tenths, ...edges])].sort((a, b) => a - b);
}

/** Only these groups, in the order of the tally.
 * @param {Tally} tally @param {number[]} groupIndexes @returns {Tally} */
export function subset(tally, groupIndexes) {
  const kept = [...new Set(groupIndexes)].sort((a, b) => a - b);
  const indices = new Map(kept.map((old, i) => [old, i]));
  const cells = tally.cells
    .filter((cell) => indices.has(cell.group))
    .map((cell) => ({ ...cell, group: indices.get(cell.group) ?? 0 }));
  const groups = kept.map((i) => at(tally.groups, i));
  const dropped = [...(tally.reading.dropped_groups ?? []), ...tally.names.filter((_, i) => !indices.has(i))];
  const reading = dropped.length ? { ...tally.reading, dropped_groups: dropped } : tally.reading;
  const roster = tally.roster.map((one) => (typeof one === "number" ? (indices.get(one) ?? -1) : one)).filter((one) => one !== -1);
  return { ...tally, groups, names: kept.map((i) => at(tally.names, i)), cells, reading, roster, totals: totalsOf(cells, groups.length) };
}

/** The same groups with other cells: those that share a key are added up, empty ones dropped.
 * @param {Tally} tally @param {Iterable<Cell>} cells @returns {Tally} */
export function withCells(tally, cells) {
  /** @type {Map<number, Cell>} */
  const byKey = new Map();
  const size = tally.cuts.length;
  for (const cell of cells) {
    const key = (cell.group * 2 + cell.label) * size + cell.bin;
    const known = byKey.get(key);
    if (!known) byKey.set(key, { ...cell });
    else joinTo(known, cell, ["n", "w", "w2", "wh", "wh2"]);
  }
  const kept = [...byKey.entries()].filter(([, cell]) => cell.w > 0);
  const merged = kept.sort(([a], [b]) => a - b).map(([, cell]) => cell);
  return { ...tally, cells: merged, totals: totalsOf(merged, tally.groups.length) };
}

/** Add the sums of a part, and reach over its bins too.
 * @template {string} Name
 * @param {Record<Name | "first" | "end", number>} known @param {Record<Name | "first" | "end", number>} more
 * @param {readonly Name[]} names */
export function joinTo(known, more, names) {
  addUp(known, more, names);
  known.first = Math.min(known.first, more.first);
  known.end = Math.max(known.end, more.end);
}

/** @param {Cell[]} cells @param {number} groups @returns {Sums[]} */
function totalsOf(cells, groups) {
  /** @type {Sums[]} */
  const totals = Array.from({ length: groups }, () => ({ n: [0, 0], w: [0, 0], wh: [0, 0] }));
  for (const cell of cells) {
    const sums = at(totals, cell.group);
    const label = cell.label ? 1 : 0;
    sums.n[label] += cell.n;
    sums.w[label] += cell.w;
    sums.wh[label] += cell.wh;
  }
  return totals;
}

/** @param {Sums[]} totals @returns {Sums} */
export function pooled(totals) {
  /** @param {"n" | "w" | "wh"} name @returns {[number, number]} */
  const both = (name) => [sum(totals.map((t) => t[name][0])), sum(totals.map((t) => t[name][1]))];
  return { n: both("n"), w: both("w"), wh: both("wh") };
}

/** @param {Sums} sums @returns {number} */
export function weightOf(sums) {
  return sums.w[0] + sums.w[1];
}

/** The bin of a score in [0, 1]; the last holds 1.
 * @param {number[]} cuts @param {number} score @returns {number} */
export function binOf(cuts, score) {
  return Math.min(countAtMost(cuts, score) - 1, cuts.length - 2);
}

/** The first bin at or above a cut point; -1 for a value that is none.
 * @param {number[]} cuts @param {number} value @returns {number} */
export function firstBin(cuts, value) {
  const index = countAtMost(cuts, value) - 1;
  return cuts[index] === value ? index : -1;
}

/** Whether people of a cell may lie on both sides of a bin's lower edge.
 * @param {Cell} cell @param {number} first @returns {boolean} */
export function straddles(cell, first) {
  return cell.first < first && first < cell.end;
}

/** Whether it is known on which side of a threshold everybody is: it is a cut point, and no merged bins lie across it.
 * @param {Tally} tally @param {number} threshold @param {number} [group] of this group only @returns {boolean} */
export function decides(tally, threshold, group) {
  const first = firstBin(tally.cuts, threshold);
  if (first < 0) return false;
  return !tally.cells.some((cell) => (group === undefined || cell.group === group) && straddles(cell, first));
}
