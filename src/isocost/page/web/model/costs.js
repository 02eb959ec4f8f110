/** @file Costs: what an error costs, as a linear function of the two generalized rates. */

import { at, general, keyOf } from "./numbers.js";

/** @import {Group} from "./numbers.js" */

/** A number for every group, or [group, number] pairs.
 * @typedef {number | [Group, number][]} Amount */

/** What an error costs: g = a c_fp + b c_fn.
 *
 * "weighted" is the expected cost per person, a = fp (1 - mu) and b = fn mu; "plain" is a = fp and
 * b = fn; "fpr" and "fnr" are plain 1, 0 and 0, 1.
 * @typedef {{kind: "fpr" | "fnr" | "weighted" | "plain", fp?: Amount, fn?: Amount}} Cost */

/** The cost as a rule's JSON has it.
 * @typedef {{fp: Amount, fn: Amount, by_base_rate: boolean}} CostFields */

/** @param {Cost} cost @returns {CostFields} */
export function costFields(cost) {
  if (cost.kind === "fpr") return { fp: 1, fn: 0, by_base_rate: false };
  if (cost.kind === "fnr") return { fp: 0, fn: 1, by_base_rate: false };
  const { fp = 1, fn = 1 } = cost;
  return { fp, fn, by_base_rate: cost.kind === "weighted" };
}

/** @param {Cost} cost @returns {boolean} */
export function isPerGroup(cost) {
  const { fp, fn } = costFields(cost);
  return Array.isArray(fp) || Array.isArray(fn);
}

/** The cost as the command line writes it.
 * @param {Cost} cost @returns {string} */
export function costText(cost) {
  const { fp, fn, by_base_rate: weighted } = costFields(cost);
  const kind = weighted ? "weighted" : "plain";
  if (Array.isArray(fp) || Array.isArray(fn)) return `${kind} per group`;
  if (!weighted && fp === 1 && fn === 0) return "fpr";
  if (!weighted && fp === 0 && fn === 1) return "fnr";
  return `${kind}:${general(fp, 12)},${general(fn, 12)}`;
}

/** The cost for some of the groups only; numbers of the other groups are left out.
 * @param {Cost} cost @param {Group[]} groups @returns {Cost} */
export function costFor(cost, groups) {
  if (!isPerGroup(cost)) return cost;
  const kept = new Set(groups.map(keyOf));
  /** @param {Amount} amount @returns {Amount} */
  const only = (amount) =>
    Array.isArray(amount) ? amount.filter(([group]) => kept.has(keyOf(group))) : amount;
  const { fp, fn } = costFields(cost);
  return { kind: cost.kind, fp: only(fp), fn: only(fn) };
}

/** The numbers a and b of a group.
 * @param {Cost} cost @param {Group} group @param {number} baseRate @returns {[number, number]} */
export function coefficients(cost, group, baseRate) {
  const { fp, fn, by_base_rate: weighted } = costFields(cost);
  /** @param {Amount} amount @returns {number} */
  const own = (amount) => (Array.isArray(amount) ? at(amount.filter(([named]) => keyOf(named) === keyOf(group)), 0)[1] : amount);
  return weighted ? [own(fp) * (1 - baseRate), own(fn) * baseRate] : [own(fp), own(fn)];
}
