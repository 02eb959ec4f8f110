/** @file The verdict on some numbers: the tables of Python's judgement, evaluated. */

/** @typedef {Record<string, number | boolean | null>} Findings */

/** @typedef {{answers: [string, [any, string, string, number | string][], any][], reasons: [string, Record<string,
 *   any>, boolean][], slack: number}} Tables */

/** The answer to each question, the reason of the verdict and whether a repair is advised.
 * @param {Tables} tables
 * @param {Findings} findings numbers that are not known are null
 * @returns {Record<string, any>} */
export function judge({ answers, reasons, slack }, findings) {
  /** @param {string | number} key */
  const numberOf = (key) => (typeof key === "string" ? Number(findings[key] ?? NaN) : key);
  /** @type {Record<string, any>} */
  const given = {};
  for (const [question, comparisons, otherwise] of answers) {
    const holds = comparisons.find(([, left, compare, right]) => {
      const [value, bound] = [numberOf(left), numberOf(right) + slack];
      return compare === ">" ? value > bound : value <= bound;
    });
    given[question] = holds ? holds[0] : otherwise;
  }
  const settled = reasons.find(([, needed]) =>
    Object.entries(needed).every(([name, value]) => given[name] === value),
  );
  if (!settled) throw new Error("no reason fits");
  return { ...given, reason: settled[0], act: settled[2] };
}
