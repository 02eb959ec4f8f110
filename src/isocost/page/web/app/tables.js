/** @file The two tables: numbers of the groups, and repairs side by side. */

import { costText } from "../model/costs.js";
import { markOf } from "./drawing.js";
import { counted, figuresFor, make } from "./say.js";

const OF_COST = ["cost", "trivial_cost"];

/** What Python computed in advance that holds for the present settings: intervals and given numbers
 * of each group and, last, of everybody; and what is established about the cost, if it is known.
 * @param {any} own @param {any} state
 * @returns {{intervals: any[], given: any[], ofCost: any}} */
export function evidenceOf(own, state) {
  const at = Object.entries(own.at[own.thresholds.indexOf(state.threshold)] ?? {});
  const ofCost = own.evidence[costText(state.cost)] ?? null;
  const everybody = own.intervals.length - 1;
  /** @param {number} i */
  const isShown = (i) => i < everybody || !state.off.length;
  /** @param {number} i @returns {[string, any][]} */
  const decided = (i) => at.map(([name, rows]) => [name, rows[i]]);
  return {
    ofCost: state.off.length ? null : ofCost,
    intervals: own.intervals.map((/** @type {any} */ spans, /** @type {number} */ i) => (!isShown(i) ? {} : {
      ...spans, ...ofCost?.intervals[i], ...Object.fromEntries(decided(i).filter(([, row]) => Number.isFinite(row?.[0]))),
    })),
    // These compare groups with each other, so all must be there.
    given: own.given.map((/** @type {any} */ numbers, /** @type {number} */ i) => (state.off.length ? {} : {
      ...numbers, ...Object.fromEntries(decided(i).filter(([, row]) => row?.length > 2).map(([name, row]) => [name, row[2]])),
    })),
  };
}

/** @param {HTMLTableElement} table @param {any} results @param {any} look */
export function showNumbers(table, results, look) {
  const { m, all, names, shown, words, own } = results;
  const heads = names.map((/** @type {string} */ name, /** @type {number} */ i) =>
    make("th", { scope: "col" }, markOf(look, shown[i]), " ", make("bdi", {}, name)),
  );
  const head = make("tr", {}, make("td"), ...heads, make("th", { scope: "col" }, "All"));
  const columns = [...m, all];
  const { plain } = figuresFor(results);
  const rows = Object.entries(words.rows).map(([key, [label, hint]]) => {
    const cells = columns.map((one, i) => {
      const index = i === m.length ? own.intervals.length - 1 : shown[i];
      const span = own.intervals[index][key];
      const value = key === "n" ? counted(one.n) : plain(own.given[index][key] ?? one[key] ?? Number.NaN);
      const small = span ? [" ", make("small", {}, `${plain(span[0])} to ${plain(span[1])}`)] : [];
      return make("td", { "data-label": names[i] ?? "All" }, value, ...small);
    });
    const kind = OF_COST.includes(key) ? "main" : "";
    const title = make("th", { scope: "row" }, `${label} `, make("small", {}, hint));
    return make("tr", { "data-row": key, class: kind }, title, ...cells);
  });
  table.tHead?.replaceChildren(head);
  table.tBodies[0]?.replaceChildren(...rows);
}

/** @param {HTMLTableElement} table @param {any} results @param {any} look */
export function showRepairs(table, results, look) {
  const { repairs, before, state } = results;
  const lines = [{ key: "", label: "As it is", ...before }, ...repairs];
  table.tBodies[0]?.replaceChildren(
    ...lines.map((one) => {
      const title = make("th", { scope: "row", role: "rowheader" }, make("bdi", {}, one.label));
      if (one.does) title.append(" ", make("small", {}, `${one.does} ${one.keeps}`));
      if (one.note) title.append(" ", make("small", {}, one.note));
      const kind = one.key === state.method ? "chosen" : "";
      return make("tr", { role: "row", "data-repair": one.key, class: kind }, title, ...repairCells(one, results, look));
    }),
  );
}

/** Of more groups only so many are named, those of whom most change. */
const MOST_CHANGED = 4;

/** @param {any} one @param {any} results @param {any} look */
function repairCells(one, results, look) {
  const { names, shown, words } = results;
  const { plain, percent } = figuresFor(results);
  if (one.why) return [make("td", { role: "cell", colspan: "8", class: "none" }, one.why)];
  /** @param {number} i @param {string} text */
  const cell = (i, text) => make("td", { role: "cell", "data-label": words.heads[i] }, text);
  /** @param {number} i */
  const shareOf = (i) => one.by_group[i].changed;
  const order = shown.map((/** @type {number} */ _, /** @type {number} */ i) => i);
  const isLong = order.length > MOST_CHANGED + 1;
  if (isLong) order.sort((/** @type {number} */ a, /** @type {number} */ b) => shareOf(b) - shareOf(a));
  const rest = isLong ? order.splice(MOST_CHANGED) : [];
  const who = !one.changes.changed ? [words.nobody] : order.map((/** @type {number} */ i) => {
    const bar = make("span");
    bar.style.width = `${100 * shareOf(i)}%`;
    bar.style.background = look.colors[shown[i]];
    return make("div", {}, make("bdi", {}, names[i]), make("span", {}, percent(shareOf(i))), make("div", { class: "bar" }, bar));
  });
  if (rest.length && one.changes.changed) {
    const range = new Set([percent(shareOf(rest.at(-1))), percent(shareOf(rest[0]))]);
    who.push(make("small", {}, `${rest.length} other groups: ${[...range].join(" to ")}`));
  }
  return [
    cell(0, plain(one.disparity)),
    cell(1, plain(one.odds)),
    cell(2, plain(one.gap)),
    cell(3, percent(one.accuracy)),
    make("td", { role: "cell", class: "who", "data-label": words.heads[4] }, ...who),
    cell(5, percent(one.changes.by_coin)),
    cell(6, percent(one.changes.decisions)),
    cell(7, percent(one.changes.handed_over)),
  ];
}
