/** @file Small tallies whose numbers can be worked out by hand. */

import { readFileSync } from "node:fs";
import { URL } from "node:url";

import { readTally } from "./model.js";

/** @typedef {import("../../src/isocost/page/web/model/numbers.js").Group} Group */

const MEASURES = JSON.parse(readFileSync(new URL("measures.json", import.meta.url), "utf8"));

/** A tally of rows [group, label, score], on a grid of ten bins.
 * @param {[Group, number, number][]} rows
 * @param {Group[]} groups
 * @returns {ReturnType<typeof readTally>} */
export function tallyOf(rows, groups) {
  const keys = groups.map((group) => JSON.stringify(group));
  const cells = rows.map(([group, label, score]) => ({
    group: keys.indexOf(JSON.stringify(group)),
    label,
    bin: Math.min(Math.floor(score * 10 + 1e-9), 9),
    score,
  }));
  cells.sort((a, b) => a.group - b.group || a.label - b.label || a.bin - b.bin);
  return readTally({
    isocost: "0.1.0",
    bins: 10,
    edges: [],
    reading: { columns: { score: "score", label: "label", group: ["group"], weight: null } },
    groups,
    names: groups.map(String),
    measures: MEASURES,
    roster: groups.map((_, place) => place),
    rule_notes: [],
    cells: {
      group: cells.map((cell) => cell.group),
      label: cells.map((cell) => cell.label),
      bin: cells.map((cell) => cell.bin),
      n: cells.map(() => 1),
      wh: cells.map((cell) => cell.score),
      wh2: cells.map((cell) => cell.score ** 2),
    },
  });
}

/** Base rates 1/2 and 1/2.  a: c_fp = 0.25, c_fn = 0.25.  b: c_fp = 0.4, c_fn = 0.4.
 * @returns {ReturnType<typeof readTally>} */
export function twoGroups() {
  return tallyOf(
    [
      ["a", 0, 0.2],
      ["a", 0, 0.3],
      ["a", 1, 0.7],
      ["a", 1, 0.8],
      ["b", 0, 0.35],
      ["b", 0, 0.45],
      ["b", 1, 0.55],
      ["b", 1, 0.65],
    ],
    ["a", "b"],
  );
}

/** Like twoGroups, with every bin of b merged into one.
 * @returns {ReturnType<typeof readTally>} */
export function merged() {
  const tally = twoGroups();
  const cells = tally.cells.map((cell) =>
    cell.group === 1 ? { ...cell, bin: 5, first: 3, end: 7 } : cell,
  );
  return { ...tally, cells };
}

/** The page's words: those of the verdict read from Python's file, one "name": "text" after the other, and its own.
 * @returns {Record<string, any>} */
export function words() {
  /** @type {Record<string, any>} */
  const texts = {};
  const source = readFileSync("src/isocost/verdict/sentences.py", "utf-8");
  const start = source.indexOf("SENTENCES = {");
  const entries = source.slice(start, source.indexOf("\n}", start));
  for (const [, name, text] of entries.matchAll(/^ {4}"(\w+)": (\((?:\s*"[^"]*")+\s*\)|"[^"]*")/gm)) {
    texts[String(name)] = [...String(text).matchAll(/"([^"]*)"/g)].map((part) => part[1]).join("");
  }
  return { ...texts, ...JSON.parse(readFileSync("src/isocost/page/web/words.json", "utf-8")).words };
}
