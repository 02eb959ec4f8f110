/** @file Groups: what names them, how they are shown, and JSON that keeps their type. */

/** A number that JavaScript would write in another way, as its JSON text: 1.0, or 2 ** 53 + 1.
 * @typedef {{exact: string}} Exact */

/** @typedef {string | number | boolean | Exact} Scalar */

/** @typedef {Scalar | Scalar[]} Group */

/** A text that tells groups apart: 1 and "1" are two.
 * @param {Group} group
 * @returns {string} */
export function keyOf(group) {
  return JSON.stringify(group);
}

/** How to show a group to a person.
 *
 * What cannot be printed is spelled out.  Where two groups would look alike use the names of the
 * tally, which are told apart.
 * @param {Group} group
 * @returns {string} */
export function groupName(group) {
  const parts = Array.isArray(group) ? group : [group];
  return parts.map((part) => visible(partText(part))).join(", ");
}

/** @param {Scalar} part
 * @returns {string} */
function partText(part) {
  if (typeof part === "boolean") return part ? "True" : "False";
  if (typeof part === "object") return part.exact;
  return typeof part === "number" ? floatText(part) : part;
}

/** A number as Python writes it.
 * @param {number} value
 * @returns {string} */
function floatText(value) {
  if (Number.isInteger(value)) return String(value);
  const [mantissa = "", power = "0"] = value.toExponential().split("e");
  if (Number(power) >= -4) return String(value);
  return `${mantissa}e-${String(-Number(power)).padStart(2, "0")}`;
}

/** A text with the characters spelled out that have no picture of their own.
 * @param {string} text
 * @returns {string} */
export function visible(text) {
  return text.replace(/[\p{C}\p{Z}]/gu, (found) => (found === " " ? found : spelled(found)));
}

/** @param {string} character
 * @returns {string} */
function spelled(character) {
  const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
  if (short) return short;
  const hex = (character.codePointAt(0) ?? 0).toString(16);
  if (hex.length <= 2) return `\\x${hex.padStart(2, "0")}`;
  return hex.length <= 4 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}

/** JSON text in which exact numbers stand as they are; use it to copy or save a rule.
 * @param {unknown} value
 * @param {string} [indent]
 * @returns {string} */
export function jsonText(value, indent = "") {
  if (Array.isArray(value)) {
    return enclosed("[", value.map((item) => jsonText(item, `${indent}  `)), "]", indent);
  }
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const pairs = Object.entries(value);
  if (isExact(value)) return value.exact;
  const items = pairs.map(
    ([name, item]) => `${JSON.stringify(name)}: ${jsonText(item, `${indent}  `)}`,
  );
  return enclosed("{", items, "}", indent);
}

/** Whether a value is an exact number and nothing else that calls itself so.
 * @param {object} value
 * @returns {value is Exact} */
function isExact(value) {
  return "exact" in value && /^-?\d+(\.\d+)?(e[+-]\d+)?$/.test(String(value.exact));
}

/** @param {string} open
 * @param {string[]} items
 * @param {string} close
 * @param {string} indent
 * @returns {string} */
function enclosed(open, items, close, indent) {
  if (!items.length) return open + close;
  return `${open}\n${indent}  ${items.join(`,\n${indent}  `)}\n${indent}${close}`;
}
