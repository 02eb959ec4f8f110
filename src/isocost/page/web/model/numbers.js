/** @file Arithmetic, number texts that agree with Python's to the last digit, and JSON that keeps the type of groups. */

/** The largest number below x, which must be positive and finite.
 * @param {number} x @returns {number} */
export function justBelow(x) {
  const bits = new BigInt64Array(1);
  const numbers = new Float64Array(bits.buffer);
  numbers[0] = x;
  bits[0] = (bits[0] ?? 0n) - 1n;
  return numbers[0];
}

/** @param {Iterable<number>} values @returns {number} */
export function sum(values) {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

/** Add the sums of a part that have these names to a total.
 * @template {string} Name
 * @param {Record<Name, number>} total @param {Record<Name, number>} part @param {readonly Name[]} names */
export function addUp(total, part, names) {
  for (const name of names) total[name] += part[name];
}

/** How many of the sorted values are at most x (the index after them).
 * @param {readonly number[]} sorted @param {number} x @returns {number} */
export function countAtMost(sorted, x) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x < /** @type {number} */ (sorted[middle])) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The element of a list that must be there.
 * @template T
 * @param {readonly T[]} list @param {number} index @returns {T} */
export function at(list, index) {
  const element = list[index < 0 ? list.length + index : index];
  if (element === undefined) throw new RangeError(`no element ${index} of ${list.length}`);
  return element;
}

/** Four decimals, rounded up, so that the number as printed is enough.
 * @param {number} value @returns {string} */
export function roundUp(value) {
  return (Math.ceil(value * 1e4 - 1e-9) / 1e4).toFixed(4);
}

/** A number with so many digits and no needless zeros, as Python's "g" writes it.
 * @param {number} value @param {number} [digits] @returns {string} */
export function general(value, digits = 6) {
  if (value === 0 || !Number.isFinite(value)) return String(value).replace("Infinity", "inf");
  const [mantissa = "", power = "0"] = value.toExponential(digits - 1).split("e");
  const exponent = Number(power);
  if (exponent >= -4 && exponent < digits) {
    return withoutZeros(value.toFixed(digits - 1 - exponent));
  }
  const size = String(Math.abs(exponent)).padStart(2, "0");
  return `${withoutZeros(mantissa)}e${exponent < 0 ? "-" : "+"}${size}`;
}

/** @param {string} text @returns {string} */
function withoutZeros(text) {
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

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
