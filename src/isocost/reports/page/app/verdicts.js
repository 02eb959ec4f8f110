/** @file The verdict, the numbers under it and the explanation, for any settings. */

import { roundDown, roundUp, general } from "../model/numbers.js";
import { counted, fill, fixed3, listed, percent1, plainText } from "./say.js";
import { blockedOf } from "./figures.js";

/** The sentences of the page for what was found; Python says the same at the audit's settings.
 * @param {any} found what main.js computed
 * @returns {{verdict: any[], ledes: any[][], keys: any[], geometry: any[][], why: string}} */
export function sentencesOf(found) {
  return {
    verdict: verdictOf(found),
    ledes: ledesOf(found),
    keys: keysOf(found),
    geometry: geometryOf(found),
    why: whyOf(found),
  };
}

/** The groups with the highest and lowest cost, as sentences name them.
 * @param {any} found */
function extremesOf({ f, spoken }) {
  const low = f.costs.indexOf(Math.min(...f.costs));
  return {
    high: { name: spoken[f.target] },
    low: { name: spoken[low] },
    high_cost: fixed3(f.target_cost),
    low_cost: fixed3(f.costs[low]),
  };
}

/** Highest cost minus lowest.
 * @param {any} found
 * @returns {number} */
function differenceOf({ f }) {
  return f.target_cost - Math.min(...f.costs);
}

/** @param {any} found */
function differs(found) {
  return differenceOf(found) > found.f.tolerance + 1e-9;
}

/** Whether the audit found that it is not established who is worse off, and that still holds.
 * @param {any} found */
export function isUncertain({ own, sameCost, sameGroups }) {
  return own.established === false && sameCost && sameGroups;
}

/** @param {any} found */
function changedOf({ f, spoken, words }) {
  if (f.changed.length === 1) return { name: spoken[f.changed[0]] };
  return fill(words.others, { count: String(f.changed.length) });
}

/** Whether no interval says how sure it is, because the page was set to something else.
 * @param {any} found */
function isUnchecked({ own, sameCost, sameGroups }) {
  return own.confidence !== null && !(sameCost && sameGroups);
}

/** @param {any} found */
function verdictOf(found) {
  const [first = "", ...rest] = settledVerdict(found);
  if (!isUnchecked(found) || typeof first !== "string") return [first, ...rest];
  const verdict = [`${first.charAt(0).toLowerCase()}${first.slice(1)}`, ...rest];
  return fill(found.words.as_measured, { verdict });
}

/** @param {any} found */
function settledVerdict(found) {
  const { f, words, spoken } = found;
  if (!differs(found)) {
    const kind = f.tolerance ? "verdict_within" : "verdict_equal";
    return fill(words[kind], { tolerance: general(f.tolerance) });
  }
  const { high, low } = extremesOf(found);
  const many = spoken.length > 2 ? "_many" : "";
  if (isUncertain(found)) return fill(words[`verdict_uncertain${many}`]);
  if (!f.feasible) return fill(words[`verdict_infeasible${many}`], { high, low });
  const kind = f.tolerance ? "closer" : "feasible";
  const told = { changed: changedOf(found), tolerance: general(f.tolerance) };
  return fill(words[`verdict_${kind}${many}`], { high, low, ...told });
}

/** @param {any} found */
function ledesOf(found) {
  const { f, words, spoken, own } = found;
  const ends = extremesOf(found);
  if (!differs(found)) return [fill(words.lede_equal, ends)];
  if (isUncertain(found)) {
    const [low, high] = own.difference.map(fixed3);
    const many = spoken.length > 2 ? "_many" : "";
    return [fill(words[`lede_uncertain${many}`], { ...ends, span_low: low, span_high: high })];
  }
  if (f.feasible) {
    const shares = listed(sharesOf(found));
    const kind = f.tolerance ? "lede_feasible" : "lede_feasible_exact";
    return [fill(words[kind], { ...ends, shares, tolerance: general(f.tolerance) })];
  }
  const blocked = blockedOf(f);
  return [
    fill(words.lede_infeasible, {
      ...ends,
      blocked: { name: spoken[blocked] },
      blocked_cost: fixed3(f.costs[blocked]),
      ceiling: fixed3(Math.max(f.trivial_costs[blocked], f.costs[blocked])),
      short: fixed3(f.smallest_tolerance - f.tolerance),
    }),
    fill(words.way_out, {
      high: ends.high,
      required: roundDown(f.required_cost),
      smallest: roundUp(f.smallest_tolerance),
    }),
  ];
}

/** With more groups to change than this, a sentence names only those that lose most. */
const MOST_SHARES = 4;

/** @param {any} found
 * @returns {any[][]} */
function sharesOf({ f, words, spoken }) {
  const isMany = f.changed.length > MOST_SHARES;
  const most = [...f.changed].sort((a, b) => f.alpha[b] - f.alpha[a]).slice(0, MOST_SHARES - 1);
  const named = isMany ? most : f.changed;
  const told = named.map((/** @type {number} */ i) =>
    fill(words.share_of, { share: percent1(f.alpha[i]), group: { name: spoken[i] } }),
  );
  const more = String(f.changed.length - named.length);
  return isMany ? [...told, fill(words.share_of_more, { count: more })] : told;
}

/** @param {any} found */
function keysOf(found) {
  const { f, m, n, words, spoken, own, sameCost, sameGroups } = found;
  const holds = own.disparity && sameCost && sameGroups;
  const [low, high] = holds ? own.disparity.map(fixed3) : [];
  const level = `${general(100 * (own.confidence ?? 0.95), 4)}\u00a0%`;
  const span = holds ? fill(words.interval, { level, low, high }) : null;
  const gaps = m.map((/** @type {any} */ one) => one.calibration_gap);
  const worst = gaps.indexOf(Math.max(...gaps));
  return [
    { value: fixed3(differenceOf(found)), label: words.key_difference, note: span },
    reachKey(found),
    {
      value: fixed3(gaps[worst]),
      label: words.key_gap,
      note: fill(words.key_gap_note, { group: { name: spoken[worst] } }),
    },
    {
      value: counted(n),
      label: words.key_people,
      note: fill(words.key_people_note, { count: String(f.costs.length) }),
    },
  ];
}

/** @param {any} found */
function reachKey(found) {
  const { f, words, spoken } = found;
  if (!f.feasible) {
    const value = fixed3(f.smallest_tolerance - f.tolerance);
    return { value, label: words.key_reach, note: fill(words.key_reach_note), alert: !isUncertain(found) };
  }
  if (!f.changed.length) {
    return { value: "0", label: words.key_nothing, note: fill(words.key_nothing_note) };
  }
  const most = f.changed.reduce((/** @type {number} */ a, /** @type {number} */ b) =>
    f.alpha[b] > f.alpha[a] ? b : a,
  );
  const kind = f.tolerance ? "closer" : "withheld";
  const note = fill(words[`key_${kind}_note`], { group: { name: spoken[most] } });
  return { value: percent1(f.alpha[most]), label: words.key_withheld, note };
}

/** @param {any} found */
function geometryOf(found) {
  const { f, words, spoken } = found;
  const high = { name: spoken[f.target] };
  const within = f.tolerance ? fill(words.within, { tolerance: general(f.tolerance) }) : "";
  let move = fill(words.geometry_equal);
  if (!f.feasible) {
    move = fill(words.geometry_infeasible, { high, within, blocked: { name: spoken[blockedOf(f)] } });
  } else if (f.changed.length) {
    move = fill(words.geometry_feasible, { high, within, changed: changedOf(found) });
  }
  return [fill(words.geometry_axes), fill(words.geometry_line), move, fill(words.geometry_both)];
}

/** What stands above the explanation.
 * @param {any} found
 * @returns {string} */
function whyOf(found) {
  const { f, words } = found;
  if (!f.feasible) return isUncertain(found) || isUnchecked(found) ? words.why_not_measured : words.why_not;
  if (!f.changed.length) return words.why_nothing;
  return f.tolerance ? words.why_closer : words.why_equal;
}

/** What the page is shown for: on paper there are no controls to see it from.
 * @param {any} found
 * @param {string} axis the cost in words */
export function settingsOf({ state, words, called }, axis) {
  const groups = listed(state.off.map((/** @type {number} */ i) => [{ name: called[i] }]));
  const off = groups.length ? fill(words.off_groups, { groups }) : "";
  const [tolerance, threshold] = [general(state.tolerance), general(state.threshold)];
  return fill(words.settings, { axis, tolerance, threshold, off });
}

/** What no longer holds of what was computed beforehand; nothing if all does.
 * @param {any} found
 * @param {string} settings those of the audit
 * @returns {string} */
export function staleText({ own, words, sameCost, sameGroups, sameThreshold }, settings) {
  if (own.confidence === null || (sameCost && sameGroups && sameThreshold)) return "";
  // The interval of the difference in cost depends on neither threshold nor tolerance.
  const chance = sameCost && sameGroups ? "" : words.stale_chance;
  return plainText(fill(words.stale, { own: settings, chance }));
}
