/** @file The two tables: numbers of the groups, and repairs side by side. */

import { counted, fixed3, make, percent1 } from "./say.js";

const OF_COST = ["cost", "trivial_cost"];

/** Whether the interval that the audit computed for a number still holds.
 * @param {string} key @param {any} found @param {boolean} isOverall */
export function holds(key, found, isOverall) {
  if (key in (found.own.given?.[0] ?? {})) return found.sameGroups && (found.sameThreshold || !found.own.decided.includes(key));
  if (isOverall && !found.sameGroups) return false;
  if (found.tally.measures[key]?.uses_threshold) return found.sameThreshold;
  return OF_COST.includes(key) ? found.sameCost : true;
}

/** The table of numbers.
 * @param {HTMLTableElement} table @param {any} found @param {any} look
 * @param {(shape: string, color: string) => SVGElement} mark */
export function showNumbers(table, found, look, mark) {
  const { m, all, names, shown, words, own } = found;
  const heads = names.map((/** @type {string} */ name, /** @type {number} */ i) =>
    make("th", { scope: "col" }, mark(look.shapes[shown[i]], look.colors[shown[i]]), " ", make("bdi", {}, name)),
  );
  const head = make("tr", {}, make("td"), ...heads, make("th", { scope: "col" }, "All"));
  const columns = [...m, all];
  const rows = Object.entries(words.rows).map(([key, [label, hint]]) => {
    const cells = columns.map((one, i) => {
      const isOverall = i === m.length;
      const place = isOverall ? own.intervals.length - 1 : shown[i];
      const span = holds(key, found, isOverall) ? own.intervals[place]?.[key] : null;
      const given = own.given?.[place]?.[key];
      const number = given === undefined ? one[key] : holds(key, found, isOverall) ? given : null;
      const value = key === "n" ? counted(one.n) : fixed3(number ?? Number.NaN);
      return make("td", { "data-label": names[i] ?? "All" }, value, ...(span ? [" ", make("small", {}, `${fixed3(span[0])} to ${fixed3(span[1])}`)] : []));
    });
    const kind = OF_COST.includes(key) ? "main" : "";
    const title = make("th", { scope: "row" }, `${label} `, make("small", {}, hint));
    return make("tr", { "data-row": key, class: kind }, title, ...cells);
  });
  table.tHead?.replaceChildren(head);
  table.tBodies[0]?.replaceChildren(...rows);
}

/** The table of repairs.
 * @param {HTMLTableElement} table @param {any} found @param {any} look */
export function showRepairs(table, found, look) {
  const { repairs, before, state } = found;
  const lines = [{ key: "", label: "As it is", ...before }, ...repairs];
  table.tBodies[0]?.replaceChildren(
    ...lines.map((one) => {
      const title = make("th", { scope: "row", role: "rowheader" }, make("bdi", {}, one.label));
      if (one.does) title.append(" ", make("small", {}, `${one.does} ${one.keeps}`));
      if (one.note) title.append(" ", make("small", {}, one.note));
      const kind = one.key === state.method ? "chosen" : "";
      return make("tr", { role: "row", "data-repair": one.key, class: kind }, title, ...repairCells(one, found, look));
    }),
  );
}

/** @param {any} one @param {any} found @param {any} look */
function repairCells(one, { names, shown, words }, look) {
  if (one.why) return [make("td", { role: "cell", colspan: "7", class: "none" }, one.why)];
  /** @param {number} i @param {string} text */
  const cell = (i, text) => make("td", { role: "cell", "data-label": words.heads[i] }, text);
  const who = !one.changes.changed ? [words.nobody] : names.map((/** @type {string} */ name, /** @type {number} */ i) => {
    const share = one.by_group[i].changed;
    const bar = make("span");
    bar.style.width = `${100 * share}%`;
    bar.style.background = look.colors[shown[i]];
    return make("div", {}, make("bdi", {}, name), make("span", {}, percent1(share)), make("div", { class: "bar" }, bar));
  });
  return [
    cell(0, fixed3(one.disparity)),
    cell(1, fixed3(one.odds)),
    cell(2, fixed3(one.gap)),
    cell(3, percent1(one.accuracy)),
    make("td", { role: "cell", class: "who", "data-label": words.heads[4] }, ...who),
    cell(5, percent1(one.changes.by_coin)),
    cell(6, percent1(one.changes.decisions)),
  ];
}
