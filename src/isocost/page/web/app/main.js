/** @file The page: from the embedded data and the controls to everything that is shown. */

import { general, jsonText } from "../model/numbers.js";
import { readTally, subset } from "../model/tally.js";
import { costFor } from "../model/costs.js";
import { feasibility, measures, overall } from "../model/measures.js";
import { makeRule } from "../model/rules.js";
import { byId, fill, make, plainText, put, settingsOf, staleText } from "./say.js";
import { effects, repairsOf } from "./repairs.js";
import { lookOf } from "./drawing.js";
import { evidenceOf, showNumbers, showRepairs } from "./tables.js";
import { sentencesOf } from "./verdicts.js";
import { fold, isForPaper, showPictures, showReliability } from "./pictures.js";
import { fromHash, makeControls, ownState, showControls, showGroups, toHash } from "./controls.js";
import { commandOf, commandText, copyText, writeCommands } from "./copying.js";

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
/** What was computed last.
 * @type {any} */
let latest = null;

/** @param {any} settings @returns {any} */
function computed(settings) {
  const shown = whole.groups.map((_, i) => i).filter((i) => !settings.off.includes(i));
  const tally = subset(whole, shown);
  const cost = costFor(settings.cost, tally.groups);
  const exact = { ...settings, cost };
  const nothing = makeRule(tally, { method: "none", settings: {}, rows: [], notes: [] });
  const repairs = repairsOf(page, tally, shown, exact);
  const { ofCost, ...evidence } = evidenceOf(page.own, settings);
  const sides = page.own.sides[known.thresholds.indexOf(settings.threshold)] ?? [];
  return {
    state: settings, shown, tally, repairs, ofCost,
    names: shown.map((i) => page.called[i]),
    spoken: shown.map((i) => page.spoken[i]),
    called: page.called, words: page.words, outlooks: page.outlooks, judgement: page.judgement,
    own: { ...page.own, ...evidence },
    f: feasibility(tally, cost, settings.tolerance),
    m: measures(tally, exact),
    all: overall(tally, exact),
    sides: shown.map((i) => ({ passed: sides[i]?.[0] ?? Number.NaN, selected: sides[i]?.[1] ?? Number.NaN })),
    before: effects(tally, nothing, exact),
    chosen: repairs.find((one) => one.key === settings.method) ?? null,
    isOwn: toHash({ ...settings, method: own.method }, own) === "",
  };
}

/** @param {any} results */
function showWords(results) {
  const { verdict, next, ledes, keys, geometry, why, noneAdvised, isAlarm } = sentencesOf(results);
  put(byId("verdict"), verdict);
  put(byId("next"), next);
  byId("why").textContent = why;
  byId("none-advised").textContent = noneAdvised;
  paragraphs(byId("geometry"), geometry);
  byId("keys").replaceChildren(
    ...keys.map((/** @type {any} */ key) => {
      const note = put(make("span", { class: "note" }), key.note ?? []);
      const value = make("dd", {}, make("span", { class: "figure" }, key.value), note);
      return make("div", key.alert ? { class: "alert" } : {}, make("dt", {}, key.label), value);
    }),
  );
  const { words } = page;
  const { kind, fp, fn } = results.f.cost;
  const amounts = { fp: amountText(fp), fn: amountText(fn) };
  const meaning = fill(words.costs[kind].meaning, { ...words, ...amounts });
  put(byId("meaning"), meaning);
  paragraphs(byId("ledes"), [meaning, ...ledes]);
  const axis = plainText(fill(words.costs[kind].axis, amounts));
  put(byId("settings"), settingsOf(results, axis));
  const stale = staleText(results);
  byId("stale").hidden = stale === "";
  byId("stale").textContent = stale;
  byId("legend-gap").classList.toggle("alert", isAlarm);
  for (const one of document.querySelectorAll(".only-own")) one.classList.toggle("stale", !results.isOwn);
}

/** @param {any} amount */
function amountText(amount) {
  return Array.isArray(amount) ? "an amount of its own group" : general(amount ?? 1, 12);
}

/** @param {HTMLElement} element @param {any[][]} sentences */
function paragraphs(element, sentences) {
  element.replaceChildren(...sentences.map((parts) => put(make("p"), parts)));
}

/** Tell the present state everywhere but in the pictures.
 * @param {Element} [busy] the input that a person is typing in */
function tell(busy) {
  const results = computed(state);
  latest = results;
  /** @type {any} */ (window).isocost = { results, state, set: update, settled: () => pending };
  showControls(page, known, state, results, busy);
  showWords(results);
  showNumbers(byId("numbers"), results, look);
  showRepairs(byId("repairs"), results, look);
  byId("copy-rule").disabled = !results.chosen?.rule;
  byId("copy-command").disabled = commandOf(page, results) === null;
  try {
    window.history.replaceState(null, "", `#${toHash(state, own)}`);
  } catch {
    // The frame of a notebook has no address: nothing is lost but the link.
  }
}

/** Draw what was told last; one drawing after the other, and none that is out of date.
 * @param {boolean} [panels] also the pictures of reliability */
function draw(panels) {
  const mine = latest;
  queue(async () => {
    if (mine === latest) await showPictures({ page, look, views }, mine);
    if (panels && mine.shown.join() === latest.shown.join()) await showReliability({ page, look, views }, mine, queue);
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
    await showPictures({ page, look, views }, latest);
    document.documentElement.dataset["ready"] ??= String(Math.round(window.performance.now()));
    await showReliability({ page, look, views }, latest, queue);
  });
}

/** @param {string} selector of what is folded away */
function open(selector) {
  for (const one of document.querySelectorAll(selector)) one.setAttribute("open", "");
}

function start() {
  fold();
  writeCommands();
  if (isForPaper()) open("details");
  byId("controls").hidden = false;
  byId("theme").hidden = false;
  makeControls(page, known, own, update);
  byId("theme").addEventListener("click", () => retheme(look.dark ? "light" : "dark"));
  byId("reset").addEventListener("click", (/** @type {Event} */ event) => {
    event.preventDefault();
    update({ ...own });
  });
  byId("copy-rule").addEventListener("click", () => queue(() => copyText(`${latest.chosen.text ?? jsonText(latest.chosen.rule)}\n`, page.words, "The rule")));
  byId("copy-command").addEventListener("click", () => {
    const line = commandOf(page, latest) ?? "";
    queue(() => copyText(line, page.words, "The command line", commandText(page, latest)));
  });
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  dark.addEventListener("change", () => {
    if (!document.documentElement.dataset["theme"]) retheme(null);
  });
  // Paper is light: the pictures are drawn again for it, and back afterwards.
  let before = "";
  window.addEventListener("beforeprint", () => {
    before = document.documentElement.dataset["theme"] ?? "";
    open("details.fold:not(:has(.panels))");
    if (look.dark) retheme("light");
  });
  window.addEventListener("afterprint", () => {
    if (before) retheme(before);
    else if (document.documentElement.dataset["theme"]) {
      delete document.documentElement.dataset["theme"];
      retheme(null);
    }
  });
  window.addEventListener("resize", () => draw());
  window.addEventListener("hashchange", () => update(fromHash(window.location.hash, own, known)));
  retheme(null);
  queue(async () => {
    document.documentElement.dataset["done"] = "";
  });
}

start();
