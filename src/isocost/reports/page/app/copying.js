/** @file What can be copied: the rule, and the command line that does what the page shows. */

import { DATA, commandLine } from "../model/command.js";
import { byId, fill, plainText } from "./say.js";

/** The command line for what was found; null where it cannot be said.
 * @param {any} page
 * @param {any} whole the tally of the page
 * @param {any} found @returns {string | null} */
export function commandOf(page, whole, { chosen, state }) {
  const { data, positive, missing_group, drop_group, merge_groups, reading } = page.origin;
  const { name, goal } = (chosen?.rule || chosen?.isElsewhere ? page.words.methods[chosen.key] : undefined) ?? {};
  return commandLine(
    {
      command: name ? "fit" : "audit",
      method: name,
      goal,
      cost: state.cost,
      threshold: chosen?.at ?? state.threshold,
      tolerance: state.tolerance,
      merge: merge_groups,
      drop: [...state.off.map((/** @type {number} */ i) => whole.names[i]), ...whole.left_out, ...drop_group],
      bins: whole.bins,
      positive,
      missing_group,
      reading,
      data: data.length ? data : DATA,
    },
    whole.columns,
  );
}

/** What a person should know who pastes the command line.
 * @param {any} page @param {any} found @returns {string} */
export function commandText({ words, origin }, { chosen }) {
  const data = origin.data.join(", ") || DATA;
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
