/** @file Putting the pictures into the page, with their legends. */

import { reliability } from "../model/views.js";
import { byId, figuresFor, fill, isMany, make, put } from "./say.js";
import { costsFigure, ratesFigures, reliabilityFigure, valuesFigure, valuesFigures } from "./figures.js";
import { planeFigure } from "./plane.js";
import { drawn, markOf, refill } from "./drawing.js";
import { numbersOf } from "./alternatives.js";
import { offerSaving } from "./copying.js";
import { verdictOf } from "./verdicts.js";

/** What the page holds, how it looks, and the pictures that are drawn, by name.
 * @typedef {{page: any, look: any, views: Record<string, any>}} Sheet */

/** Draw costs, the plane and predictive values.
 * @param {Sheet} sheet @param {any} results */
export async function showPictures(sheet, results) {
  const { look } = sheet;
  // A frame that is not shown has no room; it tells when it has.
  if (!byId("costs-chart").clientWidth) return;
  // What is not established is no cause for alarm.
  const tone = verdictOf(results).reason === "infeasible" ? look : { ...look, alert: look.ink };
  const bars = costsFigure(results, tone, byId("costs-chart").clientWidth);
  await show(sheet, "costs", byId("costs-chart"), "costs", bars);
  const many = isMany(results);
  for (const one of document.querySelectorAll("[data-few]")) /** @type {HTMLElement} */ (one).hidden = many;
  for (const one of document.querySelectorAll("[data-many]")) /** @type {HTMLElement} */ (one).hidden = !many;
  if (many) {
    showLegends(sheet.page, bars.data, {}, results);
    await showPair(sheet, "plane", ratesFigures(results, tone, byId("plane-chart").clientWidth), ["False alarms", "Misses"]);
    await showPair(sheet, "values", valuesFigures(results, look, byId("values-chart").clientWidth), ["Positive among the selected", "Positive among the passed over"]);
    offerAll(results);
    return;
  }
  const size = sizeIn(byId("plane-chart"), 440);
  const figure = planeFigure(results, tone, size);
  showLegends(sheet.page, bars.data, figure.data, results);
  await show(sheet, "plane", byId("plane-chart"), "plane", { ...figure, size });
  const square = sizeIn(byId("values-chart"), 420);
  const values = valuesFigure(results, look, square);
  byId("values-none").hidden = values.data["groups"]?.length === results.shown.length;
  await show(sheet, "values", byId("values-chart"), "values", { ...values, size: square });
  offerAll(results);
}

/** Offer every large picture to be saved, with the numbers of the present settings.
 * @param {any} results */
function offerAll(results) {
  for (const [name, rows] of Object.entries(numbersOf(results))) {
    const element = byId(`${name}-chart`);
    const pair = [...element.querySelectorAll(".pair > div > div")];
    for (const [i, one] of (pair.length ? pair : [element]).entries()) offerSaving(one, i ? `${name}-${i + 1}` : name, rows);
  }
}

/** The room that a picture has within its axes.
 * @param {HTMLElement} element @param {number} height */
function sizeIn(element, height) {
  const padding = { left: 48, right: 16, top: 42, bottom: 52 };
  return { width: element.clientWidth - padding.left - padding.right, height: height - padding.top - padding.bottom, padding };
}

/** Draw a picture, or put other data into the one that has its size.
 * @param {Sheet} sheet @param {string} name @param {HTMLElement} element @param {string} chart @param {any} figure */
async function show({ page, look, views }, name, element, chart, figure) {
  const drawnFor = `${chart} ${JSON.stringify(figure.size)}`;
  if (views[name] && element.dataset["drawnFor"] === drawnFor) return await refill(views[name], figure);
  views[name] = await drawn(element, page.charts[chart], look, figure);
  element.dataset["drawnFor"] = drawnFor;
}

/** Two pictures of rows, side by side.
 * @param {Sheet} sheet @param {string} name @param {any[]} figures @param {string[]} titles */
async function showPair(sheet, name, figures, titles) {
  const element = byId(`${name}-chart`);
  if (!element.querySelector(".pair")) {
    element.replaceChildren(make("div", { class: "pair" }, ...titles.map((title) => make("div", {}, make("p", {}, title), make("div")))));
    delete element.dataset["drawnFor"];
  }
  for (const [i, figure] of figures.entries()) {
    const column = /** @type {HTMLElement} */ (element.firstElementChild?.children[i]);
    const [head, chart] = /** @type {HTMLElement[]} */ ([...column.children]);
    const { width, padding } = figure.size;
    column.style.width = `${width + padding.left + padding.right}px`;
    if (head) head.style.paddingLeft = `${padding.left}px`;
    if (chart) await show(sheet, `${name}-${i}`, chart, "costs", figure);
  }
}

/** Legends tell only of what is in their picture.
 * @param {any} page @param {Record<string, any[]>} bars @param {Record<string, any[]>} marks @param {any} results */
function showLegends(page, bars, marks, results) {
  byId("legend-target").hidden = !bars["target"]?.length;
  byId("legend-level").hidden = !marks["levels"]?.length;
  byId("legend-needed").hidden = !marks["needed"]?.length;
  byId("legend-arrow").hidden = !marks["arrows"]?.length;
  const repair = { name: results.chosen?.label ?? "" };
  put(byId("legend-repair"), fill(page.words.what_repair, { repair }));
  byId("legend-after").hidden = !bars["after"]?.length;
  put(byId("legend-after-text"), fill(page.words.after_repair, { repair }));
}

/** Whether the page is drawn to be printed, by `write_pdf`: then nothing is folded away. */
export const isForPaper = () => "paper" in document.documentElement.dataset;

/** With more groups than this, only those furthest from what they say are shown at once. */
const mostPanels = () => (isForPaper() ? Infinity : window.matchMedia("(max-width: 640px)").matches ? 2 : 6);

/** One picture of reliability per group; they do not depend on the controls.
 * @param {Sheet} sheet @param {any} results @param {(task: () => Promise<any>) => void} later */
export async function showReliability(sheet, results, later) {
  const element = byId("reliability");
  const order = results.m.map((/** @type {any} */ _, /** @type {number} */ i) => i);
  const most = mostPanels();
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
    const [at, name, bins] = [results.shown[i], results.names[i], reliability(results.tally, i)];
    const text = bins
      .map((bin) => `scores ${bin.lo.toFixed(1)} to ${bin.hi.toFixed(1)}: ${figuresFor(results).plain(bin.mean_label)} came true`)
      .join("; ");
    const chart = make("div", { class: "chart", role: "img", "aria-label": `${name}. ${text}` });
    const title = make("figcaption", {}, markOf(look, at), make("bdi", {}, name));
    return { at, bins, chart, figure: make("figure", {}, title, chart) };
  });
  // All are there before the first is drawn, so that they share the room alike.
  element.append(...panels.map(({ figure }) => figure));
  for (const { at, bins, chart } of panels) {
    await drawn(chart, page.charts.reliability, look, { data: reliabilityFigure(bins, look.colors[at], look) });
    offerSaving(chart, `reliability-${at + 1}`, [Object.keys(bins[0] ?? {}), ...bins.map((bin) => Object.values(bin))]);
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
