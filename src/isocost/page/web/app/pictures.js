/** @file Putting the pictures into the page, with their legends. */

import { byId, figuresFor, fill, isMany, make, put } from "./say.js";
import { FIGURES, reliabilityFigure } from "./figures.js";
import { drawn, markOf, refill } from "./drawing.js";
import { offerSaving } from "./copying.js";
import { verdictOf } from "./verdicts.js";

/** What the page holds, how it looks, and the pictures that are drawn, by name.
 * @typedef {{page: any, look: any, views: Record<string, any>}} Sheet */

/** @param {Sheet} sheet @param {any} results */
export async function showPictures(sheet, results) {
  const { look } = sheet;
  const places = /** @type {HTMLElement[]} */ ([...document.querySelectorAll("[data-chart]")]);
  // A frame that is not shown has no room; it tells when it has.
  if (!places[0]?.clientWidth) return;
  // What is not established is no cause for alarm.
  const tone = verdictOf(results).reason === "infeasible" ? look : { ...look, alert: look.ink };
  const many = isMany(results);
  for (const one of document.querySelectorAll("[data-few]")) /** @type {HTMLElement} */ (one).hidden = many;
  for (const one of document.querySelectorAll("[data-many]")) /** @type {HTMLElement} */ (one).hidden = !many;
  for (const place of places) {
    const name = place.dataset["chart"] ?? "";
    const picture = FIGURES[name]?.(results, tone, place.clientWidth);
    if (!picture) continue;
    byId(`${name}-text`).textContent = picture.told;
    showLegend(/** @type {HTMLElement} */ (place.parentElement), picture, look, results);
    for (const [i, [element, figure]] of elementsFor(place, picture).entries()) {
      await show(sheet, `${name}-${i}`, element, figure.title ? "costs" : name, figure);
      offerSaving(element, i ? `${name}-${i + 1}` : name, picture.rows);
    }
  }
}

/** The elements of a picture's parts: its place, or columns in it, with titles.
 * @param {HTMLElement} place @param {import("./figures.js").Picture} picture @returns {[HTMLElement, any][]} */
function elementsFor(place, { parts: [first, ...others] }) {
  if (!first?.title) return [[place, first]];
  const parts = [first, ...others];
  if (!place.querySelector(".pair")) {
    place.replaceChildren(make("div", { class: "pair" }, ...parts.map(({ title = "" }) => make("div", {}, make("p", {}, title), make("div")))));
    delete place.dataset["drawnFor"];
  }
  return parts.map((figure, i) => {
    const column = /** @type {HTMLElement} */ (place.firstElementChild?.children[i]);
    const [head, chart] = /** @type {HTMLElement[]} */ ([...column.children]);
    const { width, padding } = figure.size;
    column.style.width = `${width + padding.left + padding.right}px`;
    if (head) head.style.paddingLeft = `${padding.left}px`;
    return [/** @type {HTMLElement} */ (chart), figure];
  });
}

/** Draw a picture, or put other data into the one that has its size.
 * @param {Sheet} sheet @param {string} name @param {HTMLElement} element @param {string} chart @param {any} figure */
async function show({ page, look, views }, name, element, chart, figure) {
  const drawnFor = `${chart} ${JSON.stringify(figure.size)}`;
  if (views[name] && element.dataset["drawnFor"] === drawnFor) return await refill(views[name], figure);
  views[name] = await drawn(element, page.charts[chart], look, figure);
  element.dataset["drawnFor"] = drawnFor;
}

/** A legend tells only of what is in its picture: `data-drawn` names data, `data-says` a sentence on the repair.
 * @param {HTMLElement} figure @param {import("./figures.js").Picture} picture @param {any} look @param {any} results */
function showLegend(figure, { parts, isPartial = false }, look, { spoken, shown, words, chosen }) {
  /** @param {string} name @param {(element: HTMLElement, value: string) => void} task */
  const each = (name, task) => {
    for (const one of /** @type {NodeListOf<HTMLElement>} */ (figure.querySelectorAll(`[data-${name}]`))) task(one, one.dataset[name] ?? "");
  };
  each("drawn", (one, name) => (one.hidden = !parts.some(({ data }) => data[name]?.length)));
  each("says", (one, name) => put(one, fill(words[name], { repair: { name: chosen?.label ?? "" } })));
  each("partial", (one) => (one.hidden = !isPartial));
  each("groups", (one) => one.replaceChildren(
    ...spoken.map((/** @type {string} */ name, /** @type {number} */ i) => make("li", {}, markOf(look, shown[i]), make("bdi", {}, name))),
  ));
}

/** Whether the page is drawn to be printed, by `write_pdf`: then nothing is folded away. */
export const isForPaper = () => "paper" in document.documentElement.dataset;

/** One picture of reliability per group; they do not depend on the controls.
 * @param {Sheet} sheet @param {any} results @param {(task: () => Promise<any>) => void} later */
export async function showReliability(sheet, results, later) {
  const element = byId("reliability");
  const order = results.m.map((/** @type {any} */ _, /** @type {number} */ i) => i);
  // Of more groups only those furthest from what they say are shown at once.
  const most = isForPaper() ? Infinity : window.matchMedia("(max-width: 640px)").matches ? 2 : 6;
  if (order.length > most) order.sort((/** @type {number} */ a, /** @type {number} */ b) => results.m[b].calibration_gap - results.m[a].calibration_gap);
  const rest = order.splice(most);
  element.replaceChildren();
  element.parentElement?.querySelector("details")?.remove();
  if (rest.length) {
    const more = make("details", { class: "fold" }, make("summary", {}, `${rest.length} more groups, with smaller calibration gaps`), make("div", { class: "panels" }));
    more.addEventListener("toggle", () => later(() => showPanels(sheet, /** @type {HTMLElement} */ (more.lastElementChild), results, rest)), { once: true });
    element.after(more);
  }
  await showPanels(sheet, element, results, order);
}

/** @param {Sheet} sheet @param {HTMLElement} element @param {any} results @param {number[]} order */
async function showPanels({ page, look }, element, results, order) {
  const panels = order.map((i) => {
    const [at, name] = [results.shown[i], results.names[i]];
    const bins = page.reliability[at];
    const text = bins
      .map((/** @type {any} */ bin) => `scores ${bin.lo.toFixed(1)} to ${bin.hi.toFixed(1)}: ${figuresFor(results).plain(bin.mean_label)} came true`)
      .join("; ");
    const chart = make("div", { class: "chart", role: "img", "aria-label": `${name}. ${text}` });
    const title = make("figcaption", {}, markOf(look, at), make("bdi", {}, name));
    return { at, bins, chart, figure: make("figure", {}, title, chart) };
  });
  // All are there before the first is drawn, so that they share the room alike.
  element.append(...panels.map(({ figure }) => figure));
  for (const { at, bins, chart } of panels) {
    await drawn(chart, page.charts.reliability, look, { data: reliabilityFigure(bins, look.colors[at], look) });
    offerSaving(chart, `reliability-${at + 1}`, [Object.keys(bins[0] ?? {}), ...bins.map((/** @type {any} */ bin) => Object.values(bin))]);
  }
}

/** Long parts that a phone folds away until they are asked for. */
const FOLDED = [[".geometry", "How to read it"], [".by-score", "Group by group"], [".by-reviewer", "Whoever decides about them"], [".prose .advice", "In commands"], [".scroll:has(#thresholds)", "Threshold by threshold"], [".scroll:has(#bounds)", "Pair by pair"], [".scroll:has(#unseen)", "Repair by repair"], [".computed", "All settings"], [".glossary", "The words"]];

export function fold() {
  if (!window.matchMedia("(max-width: 640px)").matches) return;
  for (const [selector = "", title = ""] of FOLDED) {
    for (const part of document.querySelectorAll(selector)) {
      const folded = make("details", { class: "fold" }, make("summary", {}, title));
      part.replaceWith(folded);
      folded.append(part);
    }
  }
}
