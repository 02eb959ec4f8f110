/** @file Sentences and numbers: templates are filled with texts and names, never with markup. */

import { general, roundUp } from "../model/numbers.js";

/** A part of a sentence: words, or the name of a group.
 * @typedef {string | {name: string}} Part */

/** @typedef {string | {name: string} | Part[]} Filling */

/** @param {string} template @param {Record<string, Filling>} [values] @returns {Part[]} */
export function fill(template, values = {}) {
  return template.split(/\{(\w+)\}/).flatMap((piece, index) => {
    if (index % 2 === 0) return piece ? [piece] : [];
    const value = values[piece] ?? "";
    return Array.isArray(value) ? value : [value];
  });
}

/** @param {Part[]} parts @returns {string} */
export function plainText(parts) {
  return parts.map((part) => (typeof part === "string" ? part : part.name)).join("");
}

/** Put a sentence into an element, and give that; names stand apart, so that their direction stays their own.
 * @param {Element} element @param {Part[]} parts */
export function put(element, parts) {
  element.replaceChildren(...parts.map((part) => (typeof part === "string" ? part : make("bdi", { class: "name" }, part.name))));
  return element;
}

/** @param {string} tag @param {Record<string, string>} [attributes]
 * @param {...(Node | string)} children @returns {HTMLElement} */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** The element with an id, which the template has.
 * @param {string} id @returns {any} */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element ${id}`);
  return element;
}

/** @param {number} share @returns {string} */
export function percent1(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(1)}\u00a0%` : "–";
}

/** How costs are written: see Figures in verdict/sentences.py.
 * @typedef {{decimals: number, plain: (value: number) => string, percent: (value: number) => string, cost: (value:
 *   number) => string, points: (value: number) => string, difference: (value: number) => string, bare: (value: number)
 *   => string, tolerance: (value: number) => string, enough: (value: number) => string}} Figures */

const MOST_DECIMALS = 3;

/** The figures for the results: one precision for headline, tables and pictures.
 * @param {any} results @returns {Figures} */
export function figuresFor({ f }) {
  return figuresOf(f.costs, f.cost.kind);
}

/** @param {number[]} costs @param {string} kind @returns {Figures} */
export function figuresOf(costs, kind) {
  const [low, high] = [Math.min(...costs), Math.max(...costs)];
  let decimals = 1;
  /** @param {number} value */
  const isUnclear = (value) => value * 100 * 10 ** decimals;
  while (decimals < MOST_DECIMALS && (isUnclear(high) < 100 || (high > low && isUnclear(high - low) < 2))) decimals += 1;
  return figuresWith(decimals, kind === "fpr" || kind === "fnr");
}

/** @param {number} decimals @param {boolean} isScore whether a cost is an average score @returns {Figures} */
export function figuresWith(decimals, isScore) {
  /** @param {number} value */
  const percent = (value) => `${fixed(100 * value, decimals)}\u00a0%`;
  /** @param {number} value */
  const plain = (value) => fixed(value, decimals + 2);
  /** @param {number} value */
  const points = (value) => fixed(100 * value, decimals);
  const bare = isScore ? points : plain;
  return {
    decimals, plain, percent, points, bare, cost: isScore ? percent : plain,
    difference: (value) => (isScore ? `${points(value)} points` : plain(value)),
    tolerance: (value) => (isScore ? `${general(100 * value, 10)} points` : general(value)),
    enough: (value) => (isScore ? `${(100 * Number(roundUp(value))).toFixed(2)} points` : roundUp(value)),
  };
}

/** A number of decimals, or a dash for what does not exist.
 * @param {number} value @param {number} decimals @returns {string} */
export function fixed(value, decimals) {
  return Number.isFinite(value) ? value.toFixed(decimals).replace("-", "−") : "–";
}

/** @param {number} value @returns {string} */
export function counted(value) {
  return value.toLocaleString("en", { maximumFractionDigits: 1 });
}

/** Several sentences joined by commas, and the last by another word.
 * @param {Part[][]} sentences @param {string} [word] @returns {Part[]} */
export function listed(sentences, word = " and ") {
  const last = sentences.length - 1;
  return sentences.flatMap((parts, i) => (i === 0 ? parts : [i < last ? ", " : word, ...parts]));
}

/** Whether there are too many groups for a plane: rows of dots take its place, and lists name only a few.
 * @param {any} results */
export function isMany({ shown, judgement }) {
  return shown.length > judgement.in_plane;
}

/** Below this width, in pixels, pictures are narrow. */
export const NARROW = 480;

/** Names in pictures have little room, and less in narrow ones.
 * @param {string} name @param {number} [width] of the picture */
export function short(name, width = Infinity) {
  const [letters, longest] = [[...name], width < NARROW ? 17 : 26];
  return letters.length > longest ? `${letters.slice(0, longest - 1).join("")}…` : name;
}

/** Whether a repair aims at equal cost, or none is chosen; others have no cost to reach.
 * @param {any} chosen */
export function isAimed(chosen) {
  return !chosen || chosen.goal === "cost";
}

/** What the page is shown for: on paper there are no controls to see it from.
 * @param {any} results
 * @param {string} axis the cost in words */
export function settingsOf({ f, state, words, called }, axis) {
  const groups = listed(state.off.map((/** @type {number} */ i) => [{ name: called[i] }]));
  const off = groups.length ? fill(words.off_groups, { groups }) : "";
  const tolerance = figuresFor({ f }).tolerance(state.tolerance);
  return fill(words.settings, { axis, tolerance, threshold: general(state.threshold), off });
}

/** That nothing is established about a cost, or about some groups only; nothing if it is.
 * @param {any} results @returns {string} */
export function staleText({ own, words, ofCost }) {
  if (own.confidence === null || ofCost) return "";
  const costs = Object.keys(own.evidence).map((cost) => words.costs[cost]?.label.toLowerCase() ?? cost);
  return plainText(fill(words.stale, { kept: plainText(listed(costs.map((one) => [one]))) }));
}
