/** @file The command line that does what the page shows. */

import { costText, isPerGroup } from "./costs.js";

/** @import {Columns} from "./tally.js" */
/** @import {Cost} from "./costs.js" */

/** What the page is set to: `method` as the command line calls the repair, and its `goal`, where rates need no tolerance;
 * `merge` as --merge-groups takes it; `drop`, the groups that are switched off or left out; `reading`, scale, decimal,
 * encoding and sheet where they are not the usual ones; `data`, the files.
 * @typedef {{command: "audit" | "fit", cost: Cost, threshold?: number, tolerance?: number, method?: string,
 *   goal?: "cost" | "rates", share?: number | string | null, merge?: string[], drop?: string[], bins?: number, positive?: string | null,
 *   missing_group?: string | null, reading?: Record<string, string>, data?: string | string[]}} CommandSettings */

/** The file of a page that does not know where its data came from. */
export const DATA = "data.csv";

/** The command line for a POSIX shell; null for a cost per group, which it cannot express.
 *
 * Names may be hostile: each value is one quoted word, bound to its option by "=".
 * @param {CommandSettings} settings @param {Columns} columns @returns {string | null} */
export function commandLine(settings, columns) {
  const { command, cost, threshold = 0.5, tolerance = 0, bins = 1024 } = settings;
  const isFit = command === "fit";
  const usesCost = !isFit || settings.goal !== "rates";
  if (usesCost && isPerGroup(cost)) return null;
  const { score = "score", label = "label", group = ["group"], weight } = columns;
  /** @type {[string, string | number | string[] | null | undefined][]} */
  const options = [
    ["score", score], ["label", label], ["group", group], ["weight", weight],
    ["positive", settings.positive], ["missing-group", settings.missing_group],
    ...Object.entries(settings.reading ?? {}),
    ["method", isFit ? (settings.method ?? "withhold") : null],
    ["share", settings.share], ["cost", usesCost ? costText(cost) : null],
    ["threshold", threshold], ["tolerance", usesCost ? tolerance : null],
    ["merge-groups", settings.merge], ["drop-group", settings.drop],
    ["bins", bins === 1024 ? null : bins],
  ];
  const words = options.flatMap(([name, value]) =>
    [value ?? []].flat().map((one) => `--${name}=${quoted(String(one))}`),
  );
  if (isFit) words.push("--output=rule.json");
  const files = [settings.data ?? DATA].flat().map((name) => quoted(asPath(name)));
  return ["isocost", command, ...files, ...words].join(" ");
}

/** A file name that no option can be mistaken for.
 * @param {string} name @returns {string} */
function asPath(name) {
  return name.startsWith("-") && name !== "-" ? `./${name}` : name;
}

/** A text as one word of a POSIX shell, whatever it holds.
 *
 * What cannot be printed is spelled out in $'...', so that pasting it does nothing by itself.
 * @param {string} text @returns {string} */
export function quoted(text) {
  if (/^[\w@%+:,./-]+$/.test(text)) return text;
  if (!/[\p{C}\p{Z}]/u.test(text.replaceAll(" ", ""))) return `'${text.replaceAll("'", "'\\''")}'`;
  const spelled = [...text].map((character) => {
    if (character === "'" || character === "\\") return `\\${character}`;
    if (character === " " || !/[\p{C}\p{Z}]/u.test(character)) return character;
    return `\\U${(character.codePointAt(0) ?? 0).toString(16).padStart(8, "0")}`;
  });
  return `$'${spelled.join("")}'`;
}
