/** @file Groups: what names them, how they are shown, and JSON that keeps their type. */

/** A number that JavaScript would write in another way, as its JSON text: 1.0, or 2 ** 53 + 1.
 * @typedef {{exact: string}} Exact */

/** @typedef {string | number | boolean | Exact} Scalar */

/** @typedef {Scalar | Scalar[]} Group */

/** A text that tells groups apart: 1 and "1" are two.
 * @param {Group} group @returns {string} */
export function keyOf(group) {
  return JSON.stringify(group);
}

/** JSON text in which exact numbers stand as they are; use it to copy or save a rule.
 * @param {unknown} value @param {string} [indent] @returns {string} */
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
 * @param {object} value @returns {value is Exact} */
function isExact(value) {
  return "exact" in value && /^-?\d+(\.\d+)?(e[+-]\d+)?$/.test(String(value.exact));
}

/** @param {string} open @param {string[]} items @param {string} close @param {string} indent
 * @returns {string} */
function enclosed(open, items, close, indent) {
  if (!items.length) return open + close;
  return `${open}\n${indent}  ${items.join(`,\n${indent}  `)}\n${indent}${close}`;
}
