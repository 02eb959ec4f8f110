/** @file Sentences and numbers: templates are filled with texts and names, never with markup. */

/** A part of a sentence: words, or the name of a group.
 * @typedef {string | {name: string}} Part */

/** @typedef {string | {name: string} | Part[]} Filling */

/** A sentence with its places filled.
 * @param {string} template @param {Record<string, Filling>} [values] @returns {Part[]} */
export function fill(template, values = {}) {
  return template.split(/\{(\w+)\}/).flatMap((piece, place) => {
    if (place % 2 === 0) return piece ? [piece] : [];
    const value = values[piece] ?? "";
    return Array.isArray(value) ? value : [value];
  });
}

/** A sentence as plain text.
 * @param {Part[]} parts @returns {string} */
export function plainText(parts) {
  return parts.map((part) => (typeof part === "string" ? part : part.name)).join("");
}

/** Put a sentence into an element; names stand apart, so that their direction stays their own.
 * @param {Element} element @param {Part[]} parts */
export function put(element, parts) {
  element.replaceChildren(
    ...parts.map((part) =>
      typeof part === "string" ? part : make("bdi", { class: "name" }, part.name),
    ),
  );
}

/** An element with attributes and children.
 * @param {string} tag @param {Record<string, string>} [attributes]
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
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
}

/** Three decimals, or a dash for what does not exist.
 * @param {number} value @returns {string} */
export function fixed3(value) {
  return Number.isFinite(value) ? value.toFixed(3).replace("-", "−") : "–";
}

/** A share in percent with one decimal.
 * @param {number} share @returns {string} */
export function percent1(share) {
  return Number.isFinite(share) ? `${(100 * share).toFixed(1)}\u00a0%` : "–";
}

/** A count with separators.
 * @param {number} value @returns {string} */
export function counted(value) {
  return value.toLocaleString("en", { maximumFractionDigits: 1 });
}

/** Several sentences joined by commas, and the last by another word.
 * @param {Part[][]} sentences @param {string} [word] @returns {Part[]} */
export function listed(sentences, word = " and ") {
  const last = sentences.length - 1;
  return sentences.flatMap((parts, i) => (i === 0 ? parts : [i < last ? ", " : word, ...parts]));
}
