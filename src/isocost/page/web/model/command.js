/** @file The command line that does what the page shows. */

import { costText, isPerGroup } from "./costs.js";

/** @import {Cost} from "./costs.js" */

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
