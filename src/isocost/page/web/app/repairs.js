/** @file The repairs on offer at the present settings, and what each would do.
 *
 * The page computes one of them, withhold.  The others are given: Python made them in advance for a
 * few settings (given_repairs in view.py), and givenRule picks the one to show. */

import { general, roundUp } from "../model/numbers.js";
import { costText } from "../model/costs.js";
import { feasibility, measures, overall } from "../model/measures.js";
import { changes, expected, makeRule, withhold } from "../model/rules.js";
import { fill, plainText } from "./say.js";

/** A rule, or why there is none; whether only the command line makes it for these settings (`isElsewhere`), and the
 * threshold that it was made for, if it is another (`at`).
 * @typedef {{rule: any, why?: string, isElsewhere?: boolean, at?: number, label?: string, note?: string}} Offer */

/** Every repair, with its rule or the reason why there is none.
 * @param {any} page the embedded data
 * @param {any} tally of the groups that are switched on
 * @param {number[]} shown their indices
 * @param {any} state @returns {any[]} */
export function repairsOf(page, tally, shown, state) {
  const { methods } = page.words;
  const texts = Object.values(page.made?.rules ?? {});
  const supplied = Object.entries(page.rules).map(([label, compact], i) => {
    const rule = fullRule(compact, tally, shown);
    const goal = Object.values(methods).find(({ name }) => name === rule.method)?.goal;
    // It is copied as it was given: it may know groups that the page does not.
    return { key: `rule:${label}`, label, goal, rule, text: texts[i], ...effects(tally, rule, state) };
  });
  const made = Object.keys(methods).map((key) => {
    const offer = key === "withhold" ? computedRule(page, tally, state) : givenRule(page, tally, shown, key, state);
    // A rule for another threshold promises nothing about decisions at this one.
    const at = { ...state, threshold: offer.at ?? state.threshold };
    return { key, ...methods[key], ...offer, ...effects(tally, offer.rule, at) };
  });
  return [...supplied, ...made];
}

/** @param {any} page @param {any} tally @param {any} state @returns {Offer} */
function computedRule({ words }, tally, { cost, tolerance }) {
  const rule = withhold(tally, { cost, tolerance });
  if (rule) return { rule };
  const smallest = roundUp(feasibility(tally, cost, tolerance).smallest_tolerance);
  const isPossible = (withhold(tally, { cost, tolerance: Number(smallest) })?.rows.length ?? 0) > 0;
  const hint = isPossible ? fill(words.possible_with_tolerance, { value: general(Number(smallest)) }) : fill(words.possible_with_none);
  const why = fill(words.why_tolerance, { title: words.methods.withhold.label, tolerance: general(tolerance) });
  return { rule: null, why: plainText([...why, ...hint]) };
}

/** The rule that Python made in advance for these settings, or for the nearest threshold.
 * @param {any} page @param {any} tally @param {number[]} shown @param {string} method
 * @param {any} state @returns {Offer} */
export function givenRule({ words, given, tally: whole }, tally, shown, method, state) {
  if (shown.length < whole.groups.length) return { rule: null, why: words.given_groups, isElsewhere: true };
  const made = given.filter((/** @type {any} */ one) => one.method === method);
  if (!made.length) return { rule: null, why: words.given_none, isElsewhere: true };
  // Without a cost the method does not depend on it, nor on the tolerance.
  const fitting = made.filter((/** @type {any} */ one) =>
    one.cost === null || (one.cost === costText(state.cost) && one.tolerance === state.tolerance),
  );
  if (!fitting.length) {
    const costs = new Set(made.map((/** @type {any} */ { cost }) => words.costs[cost]?.label.toLowerCase() ?? cost));
    const tolerances = new Set(made.map((/** @type {any} */ { tolerance }) => general(tolerance)));
    const told = { costs: [...costs].join(" or "), tolerances: [...tolerances].join(" or ") };
    return { rule: null, why: plainText(fill(words.given_settings, told)), isElsewhere: true };
  }
  /** @param {any} one what it was made for; null where the threshold does not matter */
  const away = (one) => Math.abs((one.threshold ?? state.threshold) - state.threshold);
  const nearest = fitting.reduce((/** @type {any} */ a, /** @type {any} */ b) => (away(b) < away(a) ? b : a));
  const { rule, why, elsewhere, ...itself } = nearest;
  /** @type {Offer} */
  const offer = { ...("label" in itself ? { label: itself.label } : {}), ...(rule ? { rule: fullRule(rule, tally, shown) } : { rule, why, isElsewhere: elsewhere }) };
  if (!away(nearest)) return offer;
  const told = { used: general(nearest.threshold), name: words.methods[method].label };
  const [label, note] = [words.given_at, words.given_nearest].map((text) => plainText(fill(text, told)));
  return { ...offer, at: nearest.threshold, label, note };
}

/** The rule that Python wrote in short, for the groups that are switched on.
 * @param {any} compact @param {any} tally @param {number[]} shown */
export function fullRule(compact, tally, shown) {
  const { method, cost, settings, coin, notes, promise } = compact;
  const rows = compact.rows
    .filter((/** @type {any[]} */ row) => shown.includes(row[0]))
    .map((/** @type {any[]} */ [index, lo, hi, value, probability, end]) => ({
      group: tally.groups[shown.indexOf(index)], lo, hi,
      action: value === null ? "mirror" : value === "defer" ? value : end === undefined ? "set" : "line",
      value: value === "defer" ? null : value, probability, ...(end === undefined ? {} : { end }),
    }));
  const rule = makeRule(tally, { method, settings, rows, notes, salt: coin.salt, promise });
  return { ...rule, cost };
}

/** @param {any} tally @param {any} rule @param {any} state */
export function effects(tally, rule, state) {
  if (!rule) return {};
  const { threshold, cost } = state;
  try {
    const after = expected(rule, tally);
    const groups = measures(after, { threshold, cost });
    const { overall: everybody, groups: by } = changes(tally, rule, threshold);
    return {
      after: groups,
      disparity: spreadOf(groups, "cost"),
      odds: Math.max(spreadOf(groups, "fpr"), spreadOf(groups, "fnr")),
      gap: Math.max(...groups.map((one) => one.calibration_gap)),
      accuracy: overall(after, { threshold, cost }).accuracy,
      changes: everybody, by_group: by,
    };
  } catch (error) {
    return { rule: null, why: error instanceof Error ? error.message : String(error) };
  }
}

/** @param {any[]} groups @param {string} name */
export function spreadOf(groups, name) {
  const values = groups.map((one) => one[name]);
  return Math.max(...values) - Math.min(...values);
}
