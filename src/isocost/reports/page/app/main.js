/** @file The page: from the embedded data and the controls to everything that is shown. */

import { general } from "../model/numbers.js";
import { jsonText } from "../model/groups.js";
import { readTally, rowsOf, subset } from "../model/tally.js";
import { costFor } from "../model/costs.js";
import { measures, overall } from "../model/measures.js";
import { feasibility } from "../model/feasibility.js";
import { makeRule } from "../model/rules.js";
import { reliability, scoresBySide } from "../model/views.js";
import { byId, fill, fixed3, make, plainText, put } from "./say.js";
import { fromHash, ownState, toHash } from "./state.js";
import { effects, repairsOf } from "./repairs.js";
import { costsFigure, isAimed, reliabilityFigure, valuesFigure } from "./figures.js";
import { planeFigure } from "./plane.js";
import { drawn, lookOf, markOf, refill } from "./drawing.js";
import { evidenceOf, showNumbers, showRepairs } from "./tables.js";
import { alternativesOf, numbersOf, valuesTold } from "./alternatives.js";
import { isUncertain, sentencesOf, settingsOf, staleText } from "./verdicts.js";
import { makeControls, showControls, showGroups } from "./controls.js";
import { commandOf, commandText, copyText, offerSaving } from "./copying.js";

const page = JSON.parse(byId("data").textContent);
const whole = readTally(page.tally);
const own = ownState(page.own, whole);
const known = {
  thresholds: page.own.thresholds,
  methods: ["none", ...Object.keys(page.rules).map((name) => `rule:${name}`), ...Object.keys(page.words.methods)],
  groups: whole.groups.length,
};
const [firstRule] = Object.keys(page.rules);
if (firstRule !== undefined) own.method = `rule:${firstRule}`;

let state = fromHash(window.location.hash, own, known);
let look = lookOf(page);
/** The pictures, once they are drawn.
 * @type {Record<string, any>} */
let views = {};
let rowsDrawn = 0;
/** What was computed last.
 * @type {any} */
let latest = null;

/** Everything that the present settings lead to.
 * @param {any} settings @returns {any} */
function computed(settings) {
  const shown = whole.groups.map((_, i) => i).filter((i) => !settings.off.includes(i));
  const tally = subset(whole, shown);
  const cost = costFor(settings.cost, tally.groups);
  const exact = { ...settings, cost };
  const nothing = makeRule(tally, { method: "none", settings: {}, rows: [], notes: [] });
  const repairs = repairsOf(page, tally, shown, exact);
  const { ofCost, ...evidence } = evidenceOf(page.own, settings);
  return {
    state: settings,
    shown,
    tally,
    n: rowsOf(tally),
    names: shown.map((i) => page.called[i]),
    spoken: shown.map((i) => page.spoken[i]),
    called: page.called,
    words: page.words,
    own: { ...page.own, ...evidence },
    ofCost,
    outlooks: page.outlooks,
    judgement: page.judgement,
    f: feasibility(tally, cost, settings.tolerance),
    m: measures(tally, exact),
    all: overall(tally, exact),
    sides: shown.map((_, i) => scoresBySide(tally, settings.threshold, i)),
    before: effects(tally, nothing, exact),
    repairs,
    chosen: repairs.find((one) => one.key === settings.method) ?? null,
    sameThreshold: true,
    isOwn: toHash({ ...settings, method: own.method }, own) === "",
  };
}

/** @param {any} found */
function showWords(found) {
  const { verdict, next, ledes, keys, geometry, why, noneAdvised, isAlarm } = sentencesOf(found);
  put(byId("verdict"), verdict);
  put(byId("next"), next);
  byId("why").textContent = why;
  byId("none-advised").textContent = noneAdvised;
  paragraphs(byId("geometry"), geometry);
  byId("keys").replaceChildren(
    ...keys.map((/** @type {any} */ key) => {
      const note = make("span", { class: "note" });
      if (key.note) put(note, key.note);
      const value = make("dd", {}, make("span", { class: "figure" }, key.value), note);
      return make("div", key.alert ? { class: "alert" } : {}, make("dt", {}, key.label), value);
    }),
  );
  const { words } = page;
  const { kind, fp, fn } = found.f.cost;
  const amounts = { fp: amountText(fp), fn: amountText(fn) };
  const meaning = fill(words.costs[kind].meaning, { ...words, ...amounts });
  put(byId("meaning"), meaning);
  paragraphs(byId("ledes"), [meaning, ...ledes]);
  const axis = plainText(fill(words.costs[kind].axis, amounts));
  put(byId("settings"), settingsOf(found, axis));
  const stale = staleText(found);
  byId("stale").hidden = stale === "";
  byId("stale").textContent = stale;
  byId("legend-gap").hidden = found.f.feasible || !isAimed(found.chosen);
  byId("legend-gap").classList.toggle("alert", isAlarm);
  for (const one of document.querySelectorAll(".only-own")) one.classList.toggle("stale", !found.isOwn);
}

/** @param {any} amount */
function amountText(amount) {
  return Array.isArray(amount) ? "an amount of its own group" : general(amount ?? 1, 12);
}

/** @param {HTMLElement} place @param {any[][]} sentences */
function paragraphs(place, sentences) {
  place.replaceChildren(
    ...sentences.map((parts) => {
      const line = make("p");
      put(line, parts);
      return line;
    }),
  );
}

/** What the pictures show, in words.
 * @param {any} found */
function showAlternatives(found) {
  const { costs, plane } = alternativesOf(found);
  byId("costs-text").textContent = costs;
  byId("plane-text").textContent = plane;
  byId("values-text").textContent = valuesTold(found);
  const legend = () => found.spoken.map((/** @type {string} */ name, /** @type {number} */ i) => {
    const place = found.shown[i];
    return make("li", {}, markOf(look.shapes[place], look.colors[place]), make("bdi", {}, name));
  });
  byId("plane-groups").replaceChildren(...legend());
  byId("values-groups").replaceChildren(...legend());
}

/** @param {any} found */
async function showPictures(found) {
  const count = found.f.costs.length;
  const [costs, plane] = [byId("costs-chart"), byId("plane-chart")];
  // What is not established is no cause for alarm.
  const tone = isUncertain(found) ? { ...look, alert: look.ink } : look;
  const bars = costsFigure(found, tone, costs.clientWidth);
  if (!views["costs"] || rowsDrawn !== count) {
    rowsDrawn = count;
    views["costs"] = await drawn(costs, page.charts.costs, look, bars, 66 * count + 46);
  } else await refill(views["costs"], bars);
  // Axes and their titles take the rest.
  const size = { width: plane.clientWidth - 70, height: plane.clientHeight - 62 };
  const figure = planeFigure(found, tone, size);
  showLegends(bars.data, figure.data, found);
  if (!views["plane"]) views["plane"] = await drawn(plane, page.charts.plane, look, figure);
  else await refill(views["plane"], figure);
  const values = valuesFigure(found, look);
  byId("values-none").hidden = values.data["groups"]?.length === count;
  if (!views["values"]) views["values"] = await drawn(byId("values-chart"), page.charts.values, look, values);
  else await refill(views["values"], values);
  for (const name of ["costs", "plane", "values"]) offerSaving(byId(`${name}-chart`), name, () => numbersOf(latest)[name] ?? []);
}

/** Legends tell only of what is in their picture.
 * @param {Record<string, any[]>} bars @param {Record<string, any[]>} marks @param {any} found */
function showLegends(bars, marks, found) {
  byId("legend-target").hidden = !bars["target"]?.length;
  byId("legend-level").hidden = !marks["levels"]?.length;
  byId("legend-needed").hidden = !marks["needed"]?.length;
  byId("legend-arrow").hidden = !marks["arrows"]?.length;
  const repair = { name: found.chosen?.label ?? "" };
  put(byId("legend-repair"), fill(page.words.what_repair, { repair }));
  byId("legend-after").hidden = !bars["after"]?.length;
  put(byId("legend-after-text"), fill(page.words.after_repair, { repair }));
}

/** One picture of reliability per group; they do not depend on the controls.
 * @param {any} found */
async function showReliability(found) {
  const place = byId("reliability");
  place.replaceChildren();
  for (const [i, name] of found.names.entries()) {
    const at = found.shown[i];
    const bins = reliability(found.tally, i);
    const text = bins
      .map((bin) => `scores ${bin.lo.toFixed(1)} to ${bin.hi.toFixed(1)}: ${fixed3(bin.mean_label)} came true`)
      .join("; ");
    const chart = make("div", { class: "chart", role: "img", "aria-label": `${name}. ${text}` });
    const title = make("figcaption", {}, markOf(look.shapes[at], look.colors[at]), make("bdi", {}, name));
    place.append(make("figure", {}, title, chart));
    const figure = { data: reliabilityFigure(bins, look.colors[at], look) };
    await drawn(chart, page.charts.reliability, look, figure);
    offerSaving(chart, `reliability-${at + 1}`, () => [Object.keys(bins[0] ?? {}), ...bins.map((bin) => Object.values(bin))]);
  }
}

/** Tell the present state everywhere but in the pictures.
 * @param {Element} [busy] the input that a person is typing in */
function tell(busy) {
  const found = computed(state);
  latest = found;
  expose(found);
  showControls(page, known, state, found, busy);
  showWords(found);
  showAlternatives(found);
  showNumbers(byId("numbers"), found, look, markOf);
  showRepairs(byId("repairs"), found, look);
  byId("copy-rule").disabled = !found.chosen?.rule;
  byId("copy-command").disabled = commandOf(page, whole, found) === null;
  remember(toHash(state, own));
}

/** Keep the settings in the address; inside a notebook there is none of our own.
 * @param {string} settings */
function remember(settings) {
  try {
    window.history.replaceState(null, "", `#${settings}`);
  } catch {
    // A frame without an address: nothing is lost but the link.
  }
}

/** Draw what was told last; one drawing after the other, and none that is out of date.
 * @param {boolean} [panels] also the pictures of reliability */
function draw(panels) {
  const mine = latest;
  queue(async () => {
    if (mine === latest) await showPictures(mine);
    if (panels && mine.shown.join() === latest.shown.join()) await showReliability(mine);
  });
}

/** @param {() => Promise<any>} task */
function queue(task) {
  pending = pending.catch(() => {}).then(task);
}

/** @param {any} change @param {Element} [busy] */
function update(change, busy) {
  const before = state.off.join();
  state = { ...state, ...change };
  byId("told").textContent = "";
  byId("copied").hidden = true;
  const switched = state.off.join() !== before;
  if (switched) {
    showGroups(page, state, look, update);
    if (busy) document.getElementById(busy.id)?.focus();
  }
  tell(busy);
  draw(switched);
}

/** What is being drawn; tests wait for it.
 * @type {Promise<any>} */
let pending = Promise.resolve();

/** @param {any} found */
function expose(found) {
  /** @type {any} */ (window).isocost = { found, state, set: update, settled: () => pending };
}

/** @param {string | null} theme */
function retheme(theme) {
  if (theme) document.documentElement.dataset["theme"] = theme;
  look = lookOf(page);
  byId("theme").textContent = look.dark ? "Light" : "Dark";
  byId("theme").setAttribute("aria-label", `Switch to ${look.dark ? "light" : "dark"} colours`);
  showGroups(page, state, look, update);
  tell();
  queue(async () => {
    views = {};
    await showPictures(latest);
    document.documentElement.dataset["ready"] ??= String(Math.round(window.performance.now()));
    await showReliability(latest);
  });
}

function start() {
  byId("controls").hidden = false;
  byId("theme").hidden = false;
  makeControls(page, known, own, update);
  byId("theme").addEventListener("click", () => {
    retheme(look.dark ? "light" : "dark");
  });
  byId("reset").addEventListener("click", (/** @type {Event} */ event) => {
    event.preventDefault();
    update({ ...own });
  });
  byId("copy-rule").addEventListener("click", () => {
    const { chosen } = /** @type {any} */ (window).isocost.found;
    queue(() => copyText(`${jsonText(chosen.rule)}\n`, page.words, "The rule"));
  });
  byId("copy-command").addEventListener("click", () => {
    const { found } = /** @type {any} */ (window).isocost;
    const line = commandOf(page, whole, found) ?? "";
    queue(() => copyText(line, page.words, "The command line", commandText(page, found)));
  });
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => {
    if (!document.documentElement.dataset["theme"]) retheme(null);
  });
  // Paper is light: the pictures are drawn again for it, and back afterwards.
  let before = "";
  window.addEventListener("beforeprint", () => {
    before = document.documentElement.dataset["theme"] ?? "";
    if (look.dark) retheme("light");
  });
  window.addEventListener("afterprint", () => {
    if (before) retheme(before);
    else if (document.documentElement.dataset["theme"]) {
      delete document.documentElement.dataset["theme"];
      retheme(null);
    }
  });
  window.addEventListener("hashchange", () => update(fromHash(window.location.hash, own, known)));
  retheme(null);
  queue(async () => {
    document.documentElement.dataset["done"] = "";
  });
}

start();
