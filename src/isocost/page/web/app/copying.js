/** @file What can be copied: the rule, and the command line that does what the page shows; and saved: the pictures. */

import { commandLine } from "../model/rules.js";
import { byId, fill, make, plainText } from "./say.js";

/** Whether the page is read on Windows, where commands are quoted in another way. */
export function isWindows() {
  const { userAgentData, platform } = /** @type {any} */ (window.navigator);
  return /^win/i.test(userAgentData?.platform || platform || "");
}

/** Write the commands in the text for this system; the template has them for a POSIX shell. */
export function writeCommands() {
  if (!isWindows()) return;
  for (const code of document.querySelectorAll("code[data-windows]")) {
    code.textContent = code.getAttribute("data-windows");
  }
}

/** The command line for the results; null where it cannot be said.
 * @param {any} page
 * @param {any} results @returns {string | null} */
export function commandOf(page, { chosen, state }) {
  const { name, goal, defers } = (chosen?.rule || chosen?.isElsewhere ? page.words.methods[chosen.key] : undefined) ?? {};
  const { cost, tolerance, off, threshold } = { ...state, threshold: chosen?.at ?? state.threshold };
  const share = defers ? (chosen.rule?.settings.share ?? "least") : null;
  const prepared = page.commands[isWindows() ? "windows" : "posix"];
  return commandLine({ command: name ? "fit" : "audit", method: name, goal, share, cost, tolerance, threshold, off }, prepared);
}

/** What a person should know who pastes the command line.
 * @param {any} page @param {any} results @returns {string} */
export function commandText({ words, commands }, { chosen }) {
  const data = commands.data.join(", ");
  const path = plainText(fill(words.command_path, { data }));
  if (chosen?.key.startsWith("rule:")) return `${path}${words.command_own}`;
  if (!chosen || chosen.rule) return path;
  return `${path}${chosen.isElsewhere ? words.command_fit : words.command_audit}`;
}

/** Put a text on the clipboard, or show it to be copied by hand where that is not allowed.
 * @param {string} text @param {any} words @param {string} what
 * @param {string} [more] what else there is to say */
export async function copyText(text, words, what, more = "") {
  const area = byId("copied");
  area.hidden = true;
  try {
    await navigator.clipboard.writeText(text);
    byId("told").textContent = `${plainText(fill(words.copied, { what }))}${more}`;
  } catch {
    area.hidden = false;
    area.value = text;
    area.focus();
    area.select();
    byId("told").textContent = `${plainText(fill(words.copy_below, { what }))}${more}`;
  }
}

/** @param {HTMLElement} chart @param {string} name of the file, without its ending
 * @param {(string | number)[][]} numbers */
export function offerSaving(chart, name, numbers) {
  if (chart.nextElementSibling?.classList.contains("saving")) chart.nextElementSibling.remove();
  const kinds = {
    SVG: async () => new window.Blob([drawnText(chart).text], { type: "image/svg+xml" }),
    PNG: () => painted(chart),
    CSV: async () => new window.Blob([csvText(numbers)], { type: "text/csv" }),
  };
  const buttons = Object.entries(kinds).map(([kind, content]) => {
    const button = make("button", { type: "button", class: "quiet", "aria-label": `Save ${name} as ${kind}` }, kind);
    button.addEventListener("click", async () => {
      const address = window.URL.createObjectURL(await content());
      make("a", { href: address, download: `${name}.${kind.toLowerCase()}` }).click();
      window.URL.revokeObjectURL(address);
    });
    return button;
  });
  chart.after(make("p", { class: "saving" }, ...buttons));
}

/** A picture as a file of its own, on paper of the page's colour.
 * @param {HTMLElement} chart */
function drawnText(chart) {
  const svg = /** @type {SVGElement} */ (chart.querySelector("svg")?.cloneNode(true));
  const paper = window.getComputedStyle(document.documentElement).getPropertyValue("--paper").trim();
  svg.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  svg.setAttribute("style", `background: ${paper}`);
  for (const text of svg.querySelectorAll(".mark-text text")) {
    text.setAttribute("style", `paint-order: stroke; stroke: ${paper}; stroke-width: 4px; stroke-linejoin: round`);
  }
  const [width, height] = ["width", "height"].map((name) => Number.parseFloat(svg.getAttribute(name) ?? "") || 600);
  return { text: new window.XMLSerializer().serializeToString(svg), width: width ?? 600, height: height ?? 600 };
}

/** @param {HTMLElement} chart @returns {Promise<Blob>} */
async function painted(chart) {
  const { text, width, height } = drawnText(chart);
  const image = new window.Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * width, 2 * height];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob((blob) => done(blob ?? new window.Blob())));
}

/** Rows as CSV.  Texts are as csv_text of tables.py makes them: no spreadsheet takes one for a formula, and control characters are escaped.
 * @param {(string | number)[][]} rows */
export function csvText(rows) {
  const named = /** @type {Record<string, string>} */ ({ "\t": "\\t", "\n": "\\n", "\r": "\\r" });
  const escaped = (/** @type {string} */ one) => named[one] ?? `\\x${one.charCodeAt(0).toString(16).padStart(2, "0")}`;
  const inert = (/** @type {string} */ text) => text.replace(/\p{Cc}/gu, escaped).replace(/^\s*[=+\-@＝＋－＠]/u, "'$&");
  const cell = (/** @type {string | number} */ value) =>
    typeof value === "number" ? (Number.isFinite(value) ? String(value) : "") : `"${inert(value).replaceAll('"', '""')}"`;
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}
