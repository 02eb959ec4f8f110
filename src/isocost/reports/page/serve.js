// The start page of isocost serve: send a file, choose its columns, show the report.
// Every text from the file is put in as text, never as markup.
"use strict";

/** @typedef {{name: string, rule: string, got: string, next_step: string}} Problem
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
let limit = Infinity;

/** @type {Column} */
const NONE = { name: "", distinct: 0, values: [], scales: [], missing: 0, low: null, high: null };
const ROLES = ["score", "label", "group", "second", "weight"];
const OPTIONAL = new Set(["second", "weight"]);
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

/** @param {Problem[]} problems */
function showProblems(problems) {
  const parts = problems.flatMap((told) => {
    const title = document.createElement("h3");
    title.textContent = `${told.name}: ${told.rule}`;
    const list = document.createElement("dl");
    for (const [name, text] of /** @type {const} */ ([["Got", told.got], ["Next", told.next_step]])) {
      const [term, meaning] = [document.createElement("dt"), document.createElement("dd")];
      [term.textContent, meaning.textContent] = [name, text];
      list.append(term, meaning);
    }
    return [title, list];
  });
  $("problems").replaceChildren(...parts);
  $("problems").hidden = problems.length === 0;
  if (problems.length) $("problems").focus();
}

/** @type {Problem} */
const LOST = {
  name: "isocost serve",
  rule: "must be running",
  got: "no answer",
  next_step: "start it again, and open the address it prints",
};

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

/** @param {File} file @returns {Problem} */
function tooLarge(file) {
  const next_step = "start isocost serve with a larger --max-size, or name the file when starting it: isocost serve FILE";
  return { name: "file", rule: `must be at most ${size(limit)} here`, got: `${file.name}, ${size(file.size)}`, next_step };
}

/** @param {File} file */
async function upload(file) {
  if (file.size > limit) throw [tooLarge(file)];
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

/** @param {File} file */
async function openFile(file) {
  chosen = file;
  await look(() => upload(file));
}

/** @param {() => Promise<any>} send sends what is to be looked at */
async function look(send) {
  showProblems([]);
  $("form").hidden = true;
  $("result").hidden = true;
  try {
    held = { ...(await send()), there: true };
    offer();
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
  const one = document.createElement("option");
  [one.value, one.textContent] = [value, text];
  return one;
}

/** Fill the form with the columns of the file, the likely ones chosen. */
function offer() {
  if (!held) return;
  const { columns, guess } = held;
  for (const role of ROLES) {
    const first = option("", OPTIONAL.has(role) ? "none" : "choose a column");
    $(role).replaceChildren(first, ...columns.map((column) => option(column.name, column.name)));
    $(role).value = guess[role] ?? "";
    hint(role);
  }
  offerOutcomes(held.positive);
  offerScales();
  const { reading } = held;
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
  const group = [$("group").value, $("second").value].filter(Boolean);
  return {
    file: held?.id,
    score: $("score").value,
    label: $("label").value,
    group,
    weight: $("weight").value || null,
    positive: $("positive-field").hidden ? null : $("positive").value,
    missing_group: $("missing").value || null,
    cost: cost === "weighted" ? `weighted:${$("fp").value},${$("fn").value}` : cost,
    threshold: Number($("threshold").value),
    tolerance: Number($("tolerance").value),
    min_count: Number($("min-count").value),
    scale: $("scale").value,
    ...readingAsked(),
    people: $("people").value || null,
    outcome: $("outcome").value || null,
    positive_means: $("positive-means").value || null,
  };
}

/** @param {boolean} yes */
function busy(yes) {
  $("make").disabled = yes;
  $("make").textContent = yes ? "Making the report …" : "Make the report";
  if (yes) say("Making the report …");
}

/** @param {SubmitEvent} event */
async function make(event) {
  event.preventDefault();
  showProblems([]);
  busy(true);
  try {
    // The server deletes its copy with each report, so for the next one it gets another.
    if (!held) return;
    if (!held.there && chosen) {
      held.id = (await upload(chosen)).id;
      held.there = true;
    }
    const answer = await ask("POST", "report", JSON.stringify(reportRequest()));
    held.there = !chosen;
    show(answer.report);
  } catch (problems) {
    showFailure(problems);
  } finally {
    busy(false);
  }
}

/** @param {string} address */
function show(address) {
  say("The report is below.");
  $("report").src = address;
  $("open").href = address;
  $("download").href = `${address}?download`;
  $("result").hidden = false;
  $("result-title").focus();
  $("result").scrollIntoView();
}

function listen() {
  $("file").addEventListener("change", () => $("file").files[0] && openFile($("file").files[0]));
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
  document.addEventListener("drop", (event) => {
    const file = event.dataTransfer?.files[0];
    if (file) openFile(file);
  });
}

async function start() {
  listen();
  try {
    const state = await ask("GET", "data");
    limit = state.max_size;
    $("limit").textContent = `, up to ${size(limit)}`;
    if (state.file) {
      held = { ...state.file, there: true };
      offer();
    }
  } catch (problems) {
    showFailure(problems);
  }
}

start();
