/** @file The command line that does what the page shows. */

import { costText, isPerGroup } from "./costs.js";

/** @import {Columns} from "./tally.js" */
/** @import {Cost} from "./costs.js" */

/** What the page is set to.
 * @typedef {object} CommandSettings
 * @property {"audit" | "fit"} command
 * @property {Cost} cost
 * @property {number} [threshold]
 * @property {number} [tolerance]
 * @property {string} [method] the repair, as the command line calls it
 * @property {"cost" | "rates"} [goal] what it makes equal; rates without a tolerance
 * @property {string[]} [merge] groups that were counted as one, as --merge-groups takes them
 * @property {string[]} [drop] names of the groups that are switched off or left out
 * @property {number} [bins]
 * @property {string | null} [positive]
 * @property {string | null} [missing_group]
 * @property {Record<string, string>} [reading] scale, decimal, encoding and sheet, where they are not the usual ones
 * @property {string | string[]} [data] the files, or their names */

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
    ["score", score],
    ["label", label],
    ["group", group],
    ["weight", weight],
    ["positive", settings.positive],
    ["missing-group", settings.missing_group],
    ...Object.entries(settings.reading ?? {}),
    ["method", isFit ? (settings.method ?? "withhold") : null],
    ["cost", usesCost ? costText(cost) : null],
    ["threshold", threshold],
    ["tolerance", usesCost ? tolerance : null],
    ["merge-groups", settings.merge],
    ["drop-group", settings.drop],
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
