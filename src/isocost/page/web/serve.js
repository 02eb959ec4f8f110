// The start page of isocost serve: send a file, choose its columns, show the report.
// Every text from the file is put in as text, never as markup.
"use strict";

/** @typedef {{name: string, rule: string, got: string, next_step: string, controls?: string[], choices?: string[]}} Problem
 * @typedef {{name: string, distinct: number, values: string[], scales: string[], missing: number,
 *   low: number | null, high: number | null}} Column
 * @typedef {{id: string, name: string, columns: Column[], guess: Record<string, string>,
 *   positive: string | null, reading: Record<string, string>, there: boolean}} Held */

/** @type {(id: string) => any} the page has every element that is asked for */
const $ = (id) => document.getElementById(id);
/** @type {File | null} */
let chosen = null; // the file as the browser has it, to send it again for another report
/** @type {Held | null} */
let held = null; // the file as the server has it
/** @type {string | null} */
let base = null; // the report that another file is laid beside
let limit = Infinity;

/** @type {Column} */
const NONE = { name: "", distinct: 0, values: [], scales: [], missing: 0, low: null, high: null };
const ROLES = ["score", "label", "group", "second", "weight", "person"];
const OPTIONAL = new Set(["second", "weight", "person"]);
const READING = ["encoding", "decimal", "sheet"];
/** @type {[string, string][]} */
const SCALES = [
  ["probability", "probability (0 to 1)"],
  ["percent", "percent (0 to 100)"],
  ["logit", "logit (log-odds)"],
  ["rank", "rank (deciles, for example)"],
];

/** @param {number} bytes */
function size(bytes) {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${Math.round(bytes / 1e5) / 10} MB`;
}

/** @param {string} text */
function say(text) {
  $("status").textContent = text;
}

/** Tell what is wrong beside the control that mends it, and go there.
 * @param {Problem[]} problems */
function showProblems(problems) {
  for (const one of document.querySelectorAll("[aria-invalid]")) one.removeAttribute("aria-invalid");
  $("problems").replaceChildren(...problems.flatMap(told));
  $("problems").hidden = problems.length === 0;
  for (const { choices = [] } of problems) if (choices.length) $("sheets").replaceChildren(...choices.map((name) => option(name, name)));
  const mending = problems.flatMap(({ controls = [] }) => controls);
  if (problems.length && !mending.some((id) => goTo(id))) {
    $("form").after($("problems"));
    $("problems").focus();
  }
}

/** @param {Problem} problem @returns {HTMLElement[]} */
function told({ name, rule, got, next_step, controls = [] }) {
  const list = element("dl");
  for (const [term, text] of [["Got", got], ["Next", next_step]]) list.append(element("dt", term), element("dd", text));
  const buttons = controls.filter((id) => $(id).offsetParent || $(id).closest("details")).map((id) => {
    const button = element("button", `Go to “${$(id).labels[0].textContent}”`);
    button.setAttribute("type", "button");
    button.addEventListener("click", () => goTo(id));
    return button;
  });
  const row = element("div");
  [row.className, row.hidden] = ["buttons", !buttons.length];
  row.append(...buttons);
  return [element("h3", `${name}: ${rule}`), list, row];
}

/** @param {string} tag @param {string} [text] */
function element(tag, text = "") {
  return Object.assign(document.createElement(tag), { textContent: text });
}

/** Open what hides a control, tell what is wrong beside it, and focus it; whether it is on the page now.
 * @param {string} id */
function goTo(id) {
  const control = $(id);
  if (id === "positive" && !$("form").hidden) $("positive-field").hidden = false;
  control.closest("details")?.setAttribute("open", "");
  if (!control.offsetParent) return false;
  control.closest(".field, .drop").after($("problems"));
  control.setAttribute("aria-invalid", "true");
  control.setAttribute("aria-errormessage", "problems");
  control.focus({ preventScroll: true });
  control.scrollIntoView({ block: "center" });
  return true;
}

/** @type {Problem} */
const LOST = { name: "isocost serve", rule: "must be running", got: "no answer", next_step: "start it again, and open the address it prints" };

/** Send a request; the answer, or an error that holds problems.
 * @param {string} method @param {string} url @param {File | string | null} [body]
 * @param {(share: number) => void} [progress] @returns {Promise<any>} */
function ask(method, url, body, progress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    request.responseType = "json";
    if (progress) request.upload.onprogress = (event) => event.lengthComputable && progress(event.loaded / event.total);
    request.onload = () => {
      if (request.status === 200) resolve(request.response);
      else reject(request.response?.problems ?? [LOST]);
    };
    request.onerror = () => reject([LOST]);
    request.send(body);
  });
}

/** @param {File} file */
async function upload(file) {
  if (file.size > limit) {
    const next_step = "start isocost serve with a larger --max-size, or name the file when starting it: isocost serve FILE";
    throw [{ name: "file", rule: `must be at most ${size(limit)} here`, got: `${file.name}, ${size(file.size)}`, next_step }];
  }
  const bar = $("progress");
  [bar.hidden, bar.value] = [false, 0];
  say(`Reading ${file.name} …`);
  try {
    const url = `data?${new URLSearchParams({ name: file.name, ...readingAsked() })}`;
    const answer = await ask("POST", url, file, (share) => {
      if (share < 1) bar.value = share;
      else bar.removeAttribute("value"); // the server looks at the file now
    });
    return answer.file;
  } finally {
    bar.hidden = true;
  }
}

/** How the page asks for the file to be read; what is left open is found. */
function readingAsked() {
  const asked = READING.map((name) => [name, $(name).value]);
  return Object.fromEntries(asked.filter(([, value]) => value));
}

/** @param {File | undefined} file */
async function openFile(file) {
  if (!file) return;
  chosen = file;
  await look(() => upload(file));
}

/** @param {() => Promise<any>} send sends what is to be looked at */
async function look(send) {
  showProblems([]);
  $("form").hidden = $("result").hidden = true;
  for (const name of READING) $(`${name}-hint`).textContent = "";
  try {
    offer(await send());
  } catch (problems) {
    showFailure(problems);
  }
}

/** Look at the same file again, read in another way. */
function lookAgain() {
  const file = chosen;
  if (file) look(() => upload(file));
  else if (held) look(async () => (await ask("POST", `look?${new URLSearchParams(readingAsked())}`)).file);
}

/** @param {unknown} problems */
function showFailure(problems) {
  say("");
  const other = { name: "page", rule: "must not fail", got: String(problems), next_step: "reload it" };
  showProblems(Array.isArray(problems) ? problems : [other]);
}

/** @param {string} value @param {string} text */
function option(value, text) {
  return Object.assign(element("option", text), { value });
}

/** Fill the form with the columns of the file, the likely ones chosen.
 * @param {Held} file */
function offer(file) {
  held = { ...file, there: true };
  const { columns, guess, reading } = held;
  for (const role of ROLES) {
    const first = option("", OPTIONAL.has(role) ? "none" : "choose a column");
    $(role).replaceChildren(first, ...columns.map((column) => option(column.name, column.name)));
    $(role).value = guess[role] ?? "";
    hint(role);
  }
  offerOutcomes(held.positive);
  offerScales();
  for (const name of READING) $(`${name}-hint`).textContent = reading[name] ? `Read as “${reading[name]}”` : "";
  if (Object.keys(reading).length) $("reading").open = true;
  say(`${held.name}: ${held.columns.length} columns. Check what was guessed.`);
  $("form").hidden = false;
}

/** @param {string} role */
function columnOf(role) {
  return held?.columns.find((column) => column.name === $(role).value) ?? NONE;
}

/** Scores outside [0, 1] need to be called what they are; nothing is guessed. */
function offerScales() {
  const { scales, low, high } = columnOf("score");
  const first = scales.length ? [option("", "choose what they are")] : [];
  $("scale").replaceChildren(...first, ...SCALES.map(([value, text]) => option(value, text)));
  $("scale-hint").textContent = scales.length ? `Values from ${low} to ${high} are not probabilities.` : "";
}

/** @param {string} role */
function hint(role) {
  if (role === "second") return;
  const column = columnOf(role);
  const values = column.values.slice(0, 3).join(", ");
  $(`${role}-hint`).textContent = column.distinct ? `For example ${values}${column.distinct > 3 ? " …" : ""}` : "";
  if (role === "group") $("missing-hint").textContent = column.missing ? "Some rows have no group" : "";
}

/** Labels other than 0 and 1, or true and false, need one to be named.
 * @param {string | null} guess */
function offerOutcomes(guess) {
  const { values, distinct } = columnOf("label");
  const known = new Set(values.map((value) => value.toLowerCase()));
  const plain = [["0", "1"], ["false", "true"]].some((pair) => [...known].every((value) => pair.includes(value)));
  const needed = distinct > 0 && !plain;
  $("positive").replaceChildren(option("", "choose a value"), ...values.map((value) => option(value, value)));
  $("positive").value = guess ?? "";
  $("positive").required = needed;
  $("positive-field").hidden = !needed;
}

function reportRequest() {
  const cost = new FormData($("form")).get("cost");
  /** @param {string[]} ids @param {(text: string) => unknown} read */
  const values = (ids, read) => Object.fromEntries(ids.map((id) => [id.replace("-", "_"), read($(id).value)]));
  return {
    file: held?.id,
    group: [$("group").value, $("second").value].filter(Boolean),
    positive: $("positive-field").hidden ? null : $("positive").value,
    missing_group: $("missing").value || null,
    handed_over: $("handed-over").value !== "",
    drop_missing: $("drop-missing").value !== "",
    cost: cost === "weighted" ? `weighted:${$("fp").value},${$("fn").value}` : cost,
    ...values(["score", "label", "missing-label", "scale"], String),
    ...values(["threshold", "tolerance", "min-count"], Number),
    ...values(["weight", "person", "people", "outcome", "positive-means"], (text) => text || null),
    ...readingAsked(),
  };
}

/** Do what makes a report, with the form held still; then show it.
 * @param {string} doing @param {() => Promise<string>} task */
async function reporting(doing, task) {
  showProblems([]);
  say(doing);
  $("make").disabled = $("beside").disabled = true;
  try {
    const address = await task();
    say("The report is below.");
    $("report").src = $("open").href = address;
    $("download").href = `${address}?download`;
    $("result").hidden = false;
    $("result-title").focus();
    $("result").scrollIntoView();
  } catch (problems) {
    showFailure(problems);
  } finally {
    $("make").disabled = $("beside").disabled = false;
  }
}

/** @param {SubmitEvent} event */
function make(event) {
  event.preventDefault();
  return reporting("Making the report …", async () => {
    // The server deletes its copy with each report, so for the next one it gets another.
    if (held && !held.there && chosen) held = { ...held, id: (await upload(chosen)).id };
    const { report } = await ask("POST", "report", JSON.stringify(reportRequest()));
    if (held) held.there = !chosen;
    [base] = report.match(/\w+(?=\.html)/) ?? [null];
    return report;
  });
}

/** Send a second file with the same columns, and show both.
 * @param {File} file */
function layBeside(file) {
  $("beside").value = "";
  return reporting(`Laying ${file.name} beside it …`, async () => {
    const { id } = await upload(file);
    if (held && chosen) held.there = false;
    return (await ask("POST", "report", JSON.stringify({ ...reportRequest(), file: id, beside: base }))).report;
  });
}

function listen() {
  $("file").addEventListener("change", () => openFile($("file").files[0]));
  $("beside").addEventListener("change", () => $("beside").files[0] && layBeside($("beside").files[0]));
  $("form").addEventListener("submit", make);
  $("again").addEventListener("click", () => $("score").focus());
  for (const role of ROLES) $(role).addEventListener("change", () => hint(role));
  $("label").addEventListener("change", () => offerOutcomes(null));
  $("score").addEventListener("change", offerScales);
  for (const name of READING) $(name).addEventListener("change", lookAgain);
  for (const radio of $("form").querySelectorAll("input[name=cost]")) {
    radio.addEventListener("change", () => ($("weights").hidden = radio.value !== "weighted"));
  }
  // Anywhere on the page counts, so that a file dropped beside the box is not opened instead.
  for (const name of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(name, (event) => {
      event.preventDefault();
      $("drop").classList.toggle("over", name === "dragover");
    });
  }
  document.addEventListener("drop", (event) => openFile(event.dataTransfer?.files[0]));
}

async function start() {
  listen();
  try {
    const state = await ask("GET", "data");
    limit = state.max_size;
    $("limit").textContent = `, up to ${size(limit)}`;
    if (state.file) offer(state.file);
  } catch (problems) {
    showFailure(problems);
  }
}

start();
