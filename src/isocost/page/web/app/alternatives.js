/** @file What the pictures show, in words for those who do not see them, and in numbers. */

import { figuresFor, fill, plainText } from "./say.js";
import { isAimed } from "./figures.js";

/** The texts of the two large pictures.
 * @param {any} results @returns {{costs: string, plane: string}} */
export function alternativesOf(results) {
  const { f, m, chosen } = results;
  const { plain } = figuresFor(results);
  /** @param {any} one */
  const bothRates = (one) => `false alarms ${plain(one.generalized_fpr)}, misses ${plain(one.generalized_fnr)}`;
  const costs = toldOf(results, (i) => `cost ${plain(f.costs[i])}, at most ${plain(f.trivial_costs[i])} if calibrated`);
  const goal = isAimed(chosen) ? ` To match: ${plain(f.goal)}.` : "";
  const points = toldOf(results, (i) => `${bothRates(m[i])}; its line ends at ${plain(m[i].base_rate)}, ${plain(1 - m[i].base_rate)}`);
  return {
    costs: `Costs of errors. ${costs.join("; ")}.${goal}${afterOf(results, (one) => `cost ${plain(one.cost)}`)}`,
    plane: `The plane of both rates. ${points.join(". ")}.${afterOf(results, bothRates)}`,
  };
}

/** The text of the picture of predictive values.
 * @param {any} results @returns {string} */
export function valuesTold(results) {
  const { m, sides } = results;
  const { plain } = figuresFor(results);
  const told = toldOf(results, (i) =>
    `positive among the selected ${plain(m[i].ppv)}, scores predict ${plain(sides[i].selected)}; ` +
    `among the passed over ${plain(m[i].false_omission_rate)}, scores predict ${plain(sides[i].passed)}`,
  );
  return `${told.join(". ")}.`;
}

/** @param {any} results @param {(index: number) => string} tell @returns {string[]} */
function toldOf({ spoken }, tell) {
  return spoken.map((/** @type {string} */ name, /** @type {number} */ i) => `${name}: ${tell(i)}`);
}

/** Where the chosen repair takes the groups; nothing if there is none.
 * @param {any} results @param {(one: any) => string} tell */
function afterOf(results, tell) {
  const { chosen, words } = results;
  if (!chosen?.after) return "";
  const after = toldOf(results, (i) => tell(chosen.after[i])).join("; ");
  return ` ${plainText(fill(words.after_told, { repair: { name: chosen.label }, after }))}`;
}

/** The numbers of the large pictures, a row for each group under a header.
 * @param {any} results @returns {Record<string, (string | number)[][]>} */
export function numbersOf({ f, m, sides, names, chosen }) {
  /** @param {string[]} header @param {(i: number) => number[]} row */
  const table = (header, row) => [["group", ...header], ...names.map((/** @type {string} */ name, /** @type {number} */ i) => [name, ...row(i)])];
  return {
    costs: table(["cost", "highest_possible_cost", "cost_after_repair"], (i) => [f.costs[i], f.trivial_costs[i], chosen?.after?.[i].cost ?? Number.NaN]),
    plane: table(["generalized_fpr", "generalized_fnr", "base_rate"], (i) => [m[i].generalized_fpr, m[i].generalized_fnr, m[i].base_rate]),
    values: table(["ppv", "predicted_ppv", "false_omission_rate", "predicted_false_omission_rate"], (i) => [m[i].ppv, sides[i].selected, m[i].false_omission_rate, sides[i].passed]),
  };
}
