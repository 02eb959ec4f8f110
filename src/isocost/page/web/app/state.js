/** @file What the controls say: cost, tolerance, threshold, repair, groups; kept in the address. */

import { costText } from "../model/costs.js";

/** What the controls are set to; `off` are the indices of the groups that are switched off.
 * @typedef {{cost: import("../model/costs.js").Cost, tolerance: number, threshold: number, method: string, off: number[]}} State */

/** The settings of the audit, where the page starts.
 * @param {any} own @param {import("../model/tally.js").Tally} tally @returns {State} */
export function ownState(own, tally) {
  /** @param {number | number[]} amount */
  const perGroup = (amount) =>
    Array.isArray(amount) ? amount.map((number, i) => [tally.groups[i], number]) : amount;
  const { kind, fp, fn } = own.cost;
  const cost = kind === "fpr" || kind === "fnr" ? { kind } : { kind, fp: perGroup(fp), fn: perGroup(fn) };
  return /** @type {State} */ ({ cost, tolerance: own.tolerance, threshold: own.threshold, method: "withhold", off: [] });
}

const RATIOS = [[10, 1], [5, 1], [3, 1], [2, 1], [1, 1], [1, 2], [1, 3], [1, 5], [1, 10]];

/** The weights on offer, from false alarms to misses; those of the audit stand among them.
 * @param {any} own @returns {[number, number][]} */
export function weightsOf(own) {
  const { kind, fp, fn } = own.cost;
  const isOwn = kind === "weighted" && !Array.isArray(fp) && !Array.isArray(fn);
  /** @param {number[]} pair */
  const share = ([a = 0, b = 0]) => b / (a + b);
  const rest = isOwn ? RATIOS.filter((pair) => share(pair) !== share([fp, fn])) : RATIOS;
  const all = isOwn ? [...rest, [fp, fn]] : rest;
  return /** @type {[number, number][]} */ (all.sort((a, b) => share(a) - share(b)));
}

/** The settings as text for the address, without what is as in the audit.
 * @param {State} state @param {State} own @returns {string} */
export function toHash(state, own) {
  const settings = new window.URLSearchParams();
  if (costText(state.cost) !== costText(own.cost)) settings.set("cost", costText(state.cost));
  for (const name of /** @type {const} */ (["tolerance", "threshold", "method"])) {
    if (state[name] !== own[name]) settings.set(name, String(state[name]));
  }
  if (state.off.length) settings.set("off", state.off.join("."));
  return settings.toString();
}

/** The settings that an address holds; what makes no sense is as in the audit.
 * @param {string} hash @param {State} own
 * @param {{thresholds: number[], methods: string[], groups: number}} known @returns {State} */
export function fromHash(hash, own, known) {
  const settings = new window.URLSearchParams(hash.replace(/^#/, ""));
  const tolerance = Number(settings.get("tolerance") ?? "x");
  const threshold = Number(settings.get("threshold") ?? "x");
  const method = settings.get("method") ?? "";
  const off = (settings.get("off") ?? "").split(".").filter(Boolean).map(Number);
  const fine = off.every((i) => Number.isInteger(i) && i >= 0 && i < known.groups);
  return {
    cost: costFromText(settings.get("cost") ?? "") ?? own.cost,
    tolerance: Number.isFinite(tolerance) && tolerance >= 0 ? tolerance : own.tolerance,
    threshold: known.thresholds.includes(threshold) ? threshold : own.threshold,
    method: known.methods.includes(method) ? method : own.method,
    off: fine && known.groups - new Set(off).size >= 2 ? [...new Set(off)] : [],
  };
}

/** @param {string} text @returns {import("../model/costs.js").Cost | null} */
function costFromText(text) {
  if (text === "fpr" || text === "fnr") return { kind: text };
  const match = /^(weighted|plain):([\d.e+-]+),([\d.e+-]+)$/.exec(text);
  const [fp, fn] = [Number(match?.[2]), Number(match?.[3])];
  if (!match || !(fp >= 0 && fn >= 0 && fp + fn > 0 && fp + fn < Infinity)) return null;
  return { kind: /** @type {"weighted" | "plain"} */ (match[1]), fp, fn };
}
