/** @file The repairs on offer at the present settings, and what each would do. */

import { general, roundUp } from "../model/numbers.js";
import { measures, overall } from "../model/measures.js";
import { expected, makeRule } from "../model/rules.js";
import { withhold } from "../model/withhold.js";
import { coarsen } from "../model/coarsen.js";
import { equalizeOdds } from "../model/odds.js";
import { changes } from "../model/changes.js";
import { fill, plainText } from "./say.js";

/** The rule that Python wrote in few words, for the groups that are switched on.
 * @param {any} compact
 * @param {any} tally
 * @param {number[]} shown */
export function fullRule(compact, tally, shown) {
  const { method, cost, settings, coin, notes } = compact;
  const rows = compact.rows
    .filter((/** @type {any[]} */ row) => shown.includes(row[0]))
    .map((/** @type {any[]} */ [place, lo, hi, value, probability]) => ({
      group: tally.groups[shown.indexOf(place)],
      lo,
      hi,
      action: value === null ? "mirror" : "set",
      value,
      probability,
    }));
  const rule = makeRule(tally, { method, settings, rows, notes, salt: coin.salt });
  return { ...rule, cost };
}

/** Every repair, with its rule or the reason why there is none.
 * @param {any} page the embedded data
 * @param {any} tally of the groups that are switched on
 * @param {number[]} shown their places
 * @param {any} state
 * @returns {any[]} */
export function repairsOf(page, tally, shown, state) {
  const { cost, tolerance, threshold } = state;
  const { words } = page;
  /** @param {string} key
   * @param {() => any} attempt */
  const tried = (key, attempt) => {
    const found = { key, ...words.methods[key], ...outcome(attempt, words) };
    // A rule for another threshold promises nothing about decisions at this one.
    return { ...found, ...effects(tally, found.rule, { ...state, threshold: found.at ?? threshold }) };
  };
  const given = Object.entries(page.rules).map(([label, compact]) => {
    const rule = fullRule(compact, tally, shown);
    return { key: `given:${label}`, label, rule, ...effects(tally, rule, state) };
  });
  return [
    ...given,
    tried("withhold", () => withhold(tally, { cost, tolerance })),
    tried("coarsen", () => coarsen(tally, { cost, thresholds: [threshold], tolerance })),
    tried("equalize_odds", () => equalizeOdds(tally, { threshold })),
    tried("reconcile", () => reconciled(page, tally, shown, threshold)),
  ];
}

/** @param {() => any} attempt
 * @param {any} words */
function outcome(attempt, words) {
  /** @param {string} why */
  const none = (why) => ({ rule: null, why: plainText(fill(words.not_feasible, { why })) });
  try {
    const found = attempt();
    if (found.told) return { rule: null, why: found.told, isTold: true };
    if (!found.infeasible) return found.rule ? found : { rule: found };
    const least = found.smallest_tolerance;
    if (least === null || least === undefined) return none(found.message);
    const kind = found.reason === "decisions" ? "needs_tolerance_decisions" : "needs_tolerance";
    return none(plainText(fill(words[kind], { smallest: roundUp(least) })));
  } catch (error) {
    return none(error instanceof Error ? error.message : String(error));
  }
}

/** What Python found beforehand for the nearest threshold.
 * @param {any} page
 * @param {any} tally
 * @param {number[]} shown
 * @param {number} threshold */
function reconciled(page, tally, shown, threshold) {
  const { words } = page;
  if (shown.length < page.tally.groups.length) return { told: words.reconcile_groups };
  const [nearest] = [...page.reconcile].sort(
    (a, b) => Math.abs(a.threshold - threshold) - Math.abs(b.threshold - threshold),
  );
  if (!nearest) return { told: words.reconcile_none };
  if (!nearest.rule) return { infeasible: true, message: nearest.why };
  const rule = fullRule(nearest.rule, tally, shown);
  if (nearest.threshold === threshold) return { rule };
  const told = { used: general(nearest.threshold), name: { name: words.methods.reconcile.label } };
  const [label, note] = [words.reconcile_at, words.reconcile_snapped].map((text) => plainText(fill(text, told)));
  return { rule, at: nearest.threshold, label, note };
}

/** What holds after a rule, and what it does to people.
 * @param {any} tally
 * @param {any} rule
 * @param {any} state */
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
      changes: everybody,
      by_group: by,
    };
  } catch (error) {
    return { rule: null, why: error instanceof Error ? error.message : String(error), isTold: true };
  }
}

/** Highest minus lowest.
 * @param {any[]} groups
 * @param {string} name */
export function spreadOf(groups, name) {
  const values = groups.map((one) => one[name]);
  return Math.max(...values) - Math.min(...values);
}
