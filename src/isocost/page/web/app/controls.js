/** @file The controls: native inputs that show the state and change it; the address keeps it. */

import { general } from "../model/numbers.js";
import { costText, isPerGroup } from "../model/costs.js";
import { byId, make } from "./say.js";
import { markOf } from "./drawing.js";

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

/** Make the inputs that depend on the data, and tell whenever one changes.
 * @param {any} page
 * @param {any} known thresholds, methods, weights
 * @param {any} own the state of the audit
 * @param {(change: any, busy?: Element) => void} change */
export function makeControls(page, known, own, change) {
  makeKinds(page, own, change);
  const weights = weightsOf(page.own);
  const weight = byId("weight");
  weight.max = String(weights.length - 1);
  weight.addEventListener("input", () => {
    const [fp, fn] = weights[Number(weight.value)] ?? [1, 1];
    change({ cost: { kind: "weighted", fp, fn } });
  });
  const threshold = byId("threshold");
  threshold.max = String(known.thresholds.length - 1);
  threshold.addEventListener("input", () => {
    change({ threshold: known.thresholds[Number(threshold.value)] });
  });
  const [slider, number] = [byId("tolerance"), byId("tolerance-number")];
  slider.addEventListener("input", () => change({ tolerance: Number(slider.value) }));
  number.addEventListener("input", () => {
    const value = number.valueAsNumber;
    if (Number.isFinite(value) && value >= 0) change({ tolerance: value }, number);
  });
  number.addEventListener("blur", () => {
    // What is no tolerance was not used: show again what is.
    if (!(number.valueAsNumber >= 0)) change({});
  });
  const method = byId("method");
  method.replaceChildren(
    make("option", { value: "none" }, "None"),
    ...known.methods.filter((/** @type {string} */ key) => key !== "none").map((/** @type {string} */ key) =>
      make("option", { value: key }, page.words.methods[key]?.label ?? key.replace("rule:", "")),
    ),
  );
  method.addEventListener("change", () => change({ method: method.value }));
  byId("controls").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
}

/** @param {any} page @param {any} own @param {(change: any, busy?: Element) => void} change */
function makeKinds(page, own, change) {
  const { costs } = page.words;
  const kinds = ["fpr", "fnr", "weighted"];
  const special = page.own.cost.kind === "plain" || page.own.cost.text.endsWith("per group");
  if (special) kinds.push("own");
  byId("cost-kinds").replaceChildren(
    ...kinds.map((kind) => {
      const words = kind === "own" ? { label: "As in the audit", hint: costText(own.cost) } : costs[kind];
      const input = make("input", { type: "radio", name: "cost", value: kind, id: `cost-${kind}` });
      input.addEventListener("change", () => {
        const [fp, fn] = page.own.cost.kind === "weighted" && !special ? [page.own.cost.fp, page.own.cost.fn] : [1, 1];
        change({ cost: kind === "own" ? own.cost : kind === "weighted" ? { kind, fp, fn } : { kind } });
      });
      return make("label", { class: "choice" }, input, make("span", {}, words.label), make("small", {}, words.hint));
    }),
  );
}

/** Show the state in the inputs; the one that a person is typing in is left alone.
 * @param {any} page @param {any} known @param {any} state @param {any} results
 * @param {Element} [busy] */
export function showControls(page, known, state, results, busy) {
  const { cost } = state;
  const kind = ["fpr", "fnr"].includes(cost.kind) ? cost.kind : cost.kind === "weighted" && !isPerGroup(cost) ? "weighted" : "own";
  const radio = document.getElementById(`cost-${kind}`);
  if (radio instanceof window.HTMLInputElement) radio.checked = true;
  byId("weights").hidden = kind !== "weighted";
  if (kind === "weighted") {
    const weights = weightsOf(page.own);
    const index = weights.findIndex(([fp, fn]) => fp === cost.fp && fn === cost.fn);
    const text = `false alarm ${general(cost.fp)}, miss ${general(cost.fn)}`;
    byId("weight").value = String(Math.max(0, index));
    byId("weight").setAttribute("aria-valuetext", text);
    byId("weight-out").textContent = `${general(cost.fp)} : ${general(cost.fn)}`;
  }
  const slider = byId("tolerance");
  // Past the present difference, where nothing more changes.
  const spread = Math.max(...results.f.costs) - Math.min(...results.f.costs);
  slider.max = String(Math.max(0.1, Math.ceil(spread * 12) / 10, Math.ceil(state.tolerance * 10) / 10));
  slider.value = String(state.tolerance);
  if (busy !== byId("tolerance-number")) byId("tolerance-number").value = general(state.tolerance, 12);
  const index = known.thresholds.indexOf(state.threshold);
  byId("threshold").value = String(index);
  byId("threshold").setAttribute("aria-valuetext", general(state.threshold));
  byId("threshold-out").textContent = general(state.threshold);
  byId("method").value = state.method;
  const { key, why, note } = results.chosen ?? {};
  byId("method-does").textContent = [page.words.methods[key]?.does, why, note].filter(Boolean).join(" ");
}

/** The groups as switches that are the legend too.
 * @param {any} page @param {any} state @param {any} look
 * @param {(change: any, busy?: Element) => void} change */
export function showGroups(page, state, look, change) {
  const names = page.called;
  const on = names.length - state.off.length;
  byId("groups").replaceChildren(
    ...names.map((/** @type {string} */ name, /** @type {number} */ i) => {
      const input = /** @type {HTMLInputElement} */ (make("input", { type: "checkbox", id: `group-${i}` }));
      input.checked = !state.off.includes(i);
      // Two groups must stay, or there is nothing to compare.
      input.disabled = input.checked && on <= 2;
      input.addEventListener("change", () => {
        const off = state.off.filter((/** @type {number} */ index) => index !== i);
        change({ off: input.checked ? off : [...off, i] }, input);
      });
      const text = make("span", { class: "with-mark" }, markOf(look, i), make("bdi", {}, name));
      if (names.length === 2) return text;
      return make("label", { class: "choice" }, input, text);
    }),
  );
}
