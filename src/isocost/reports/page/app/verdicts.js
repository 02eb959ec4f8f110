/** @file The verdict, the numbers under it and the explanation, for any settings. */

import { judge } from "../model/judgement.js";
import { roundDown, roundUp, general } from "../model/numbers.js";
import { counted, fill, fixed3, listed, percent1, plainText } from "./say.js";
import { blockedOf } from "./figures.js";

/** So many groups are named in a sentence. */
const FEW = 3;

/** With more groups to change than this, a sentence names only those that lose most. */
const MOST_SHARES = 4;

/** The sentences of the page for what was found; Python says the same at the audit's settings.
 * @param {any} found what main.js computed
 * @returns {{verdict: any[], ledes: any[][], keys: any[], geometry: any[][], why: string, noneAdvised: string}} */
export function sentencesOf(found) {
  const judged = { ...found, verdict: verdictOf(found) };
  return {
    verdict: headlineOf(judged),
    ledes: detailsOf(judged),
    keys: keysOf(judged),
    geometry: geometryOf(judged),
    why: whyOf(judged),
    noneAdvised: doubtOf(judged) ? plainText(fill(judged.words.none_advised, { why: doubtOf(judged) })) : "",
  };
}

/** Why the data do not support a repair; nothing if they do, or if none would do it.
 * @param {any} found
 * @returns {string} */
function doubtOf({ words, verdict }) {
  return words[`key_${verdict.reason}`] ?? "";
}

/** What the numbers say, in codes; intervals of costs hold for the audit's own cost and groups only.
 * @param {any} found
 * @returns {any} */
export function verdictOf({ f, shown, own, judgement, sameCost, sameGroups }) {
  const isOwn = own.confidence !== null && sameCost && sameGroups;
  const { findings } = own.verdict;
  const off = f.tolerance - own.tolerance;
  const difference = f.target_cost - Math.min(...f.costs);
  const excess = excessOf(f);
  const numbers = {
    groups: Math.min(shown.length, findings.groups),
    gap_low: Math.max(...shown.map((/** @type {number} */ i) => own.floors[i])),
    gap_high: Math.max(...shown.map((/** @type {number} */ i) => own.intervals[i].calibration_gap?.[1] ?? -1)),
    difference,
    difference_low: isOwn ? findings.difference_low : difference,
    tolerance: f.tolerance,
    excess,
    excess_low: isOwn ? findings.excess_low - off : excess,
    excess_high: isOwn ? findings.excess_high - off : excess,
    intervals: isOwn,
    expected: isOwn && !off ? findings.expected : null,
    unrepaired: isOwn && !off ? findings.unrepaired : null,
  };
  const highest = isOwn ? own.verdict.highest : [f.target];
  return { ...judge(judgement, numbers), findings: numbers, highest };
}

/** How far the highest cost is above what another group can reach, less the tolerance.
 * @param {any} f */
function excessOf(f) {
  const ceilings = f.costs
    .map((/** @type {number} */ own, /** @type {number} */ i) => Math.max(own, f.trivial_costs[i]))
    .filter((/** @type {number} */ _, /** @type {number} */ i) => i !== f.target);
  return f.target_cost - Math.min(...ceilings) - f.tolerance;
}

/** Whether an alarm would be out of place: nothing is established.
 * @param {any} found */
export function isUncertain(found) {
  return verdictOf(found).reason !== "infeasible";
}

/** The groups with the highest and lowest cost, as sentences name them.
 * @param {any} found */
function endsOf({ f, spoken }) {
  const low = f.costs.indexOf(Math.min(...f.costs));
  return {
    high: { name: spoken[f.target] },
    low: { name: spoken[low] },
    high_cost: fixed3(f.target_cost),
    low_cost: fixed3(f.costs[low]),
  };
}

/** @param {any} found */
function changedOf({ f, spoken, words }) {
  if (f.changed.length === 1) return { name: spoken[f.changed[0]] };
  return fill(words.several, { count: String(f.changed.length) });
}

/** The groups that are shown to be off, the worst first.
 * @param {any} found
 * @returns {number[]} */
function miscalibrated({ shown, own, judgement }) {
  const limit = judgement.calibrated;
  const floor = (/** @type {number} */ i) => own.floors[shown[i]];
  return shown
    .map((/** @type {number} */ _, /** @type {number} */ i) => i)
    .filter((/** @type {number} */ i) => floor(i) > limit)
    .sort((/** @type {number} */ a, /** @type {number} */ b) => floor(b) - floor(a));
}

/** @param {any} found
 * @returns {any[]} */
function headlineOf(found) {
  const { words, own, verdict } = found;
  const [first = "", ...rest] = settledHeadline(found);
  const isCheckable = own.confidence !== null && !["few", "uncalibrated"].includes(verdict.reason);
  if (verdict.findings.intervals || !isCheckable || typeof first !== "string") return [first, ...rest];
  const headline = [`${first.charAt(0).toLowerCase()}${first.slice(1)}`, ...rest];
  return fill(words.as_measured, { headline });
}

/** @param {any} found
 * @returns {any[]} */
function settledHeadline(found) {
  const { f, words, spoken, verdict } = found;
  const { reason } = verdict;
  const tolerance = general(f.tolerance);
  if (reason === "equal") return fill(words[f.tolerance ? "headline_within" : "headline_equal"], { tolerance });
  if (reason === "few") return fill(words.headline_few);
  if (reason === "uncalibrated") return fill(words.headline_uncalibrated, { off: namesOf(found, miscalibrated(found)) });
  if (reason === "unestablished") return fill(words[`headline_unestablished${spoken.length > 2 ? "_many" : ""}`]);
  const kind = reason === "repair" && f.tolerance ? "closer" : reason === "unreachable" ? "uncertain" : reason;
  const high = listed(verdict.highest.slice(0, FEW).map((/** @type {number} */ i) => [{ name: spoken[i] }]), words.or);
  const form = verdict.highest.length > FEW ? "costlier_some" : spoken.length > 2 ? "costliest" : "costlier";
  const costlier = fill(words[form], { high, low: endsOf(found).low });
  return fill(words[`headline_${kind}`], { costlier, changed: changedOf(found), tolerance });
}

/** @param {any} found
 * @param {number[]} groups */
function namesOf({ words, spoken }, groups) {
  if (groups.length > FEW) return fill(words.several, { count: String(groups.length) });
  return listed(groups.map((i) => [{ name: spoken[i] }]));
}

/** @param {any} found
 * @returns {any[][]} */
function detailsOf(found) {
  const { words, verdict, own } = found;
  const { reason } = verdict;
  if (reason === "few") {
    const large = words[verdict.findings.groups === 1 ? "few_one" : "few_none"];
    const limits = { min_group: counted(own.min_group), min_label: String(own.min_label) };
    return [fill(words.few_groups, { large, ...limits }), fill(words.few_next, { plan: own.plan })];
  }
  if (reason === "uncalibrated") return calibrationOf(found);
  return costsOf(found);
}

/** @param {any} found
 * @returns {any[][]} */
function calibrationOf(found) {
  const { m, words, spoken, shown, own } = found;
  const off = miscalibrated(found);
  const kind = own.confidence === null ? "off_group_measured" : "off_group";
  const said = off.slice(0, FEW).map((i) =>
    fill(words[kind], {
      group: { name: spoken[i] },
      gap: fixed3(m[i].calibration_gap),
      floor: fixed3(own.floors[shown[i]]),
      way: words[m[i].mean_score < m[i].base_rate ? "too_low" : "too_high"],
      bias: fixed3(Math.abs(m[i].mean_score - m[i].base_rate)),
    }),
  );
  if (off.length > FEW) said.push(fill(words.off_more, { count: String(off.length - FEW) }));
  return [...said, fill(words.off_next)];
}

/** @param {any} found
 * @returns {any[][]} */
function costsOf(found) {
  const { f, words, spoken, own, verdict } = found;
  const ends = endsOf(found);
  if (verdict.reason === "equal") return [fill(words.lede_equal, ends)];
  if (verdict.reason === "unestablished") {
    const many = spoken.length > 2 ? "_many" : "";
    const [span_low, span_high] = (many ? own.disparity : own.difference).map(fixed3);
    return [fill(words[`lede_unestablished${many}`], { ...ends, span_low, span_high, more_data: own.more_data })];
  }
  if (verdict.reason === "unhelpful") {
    const { expected, unrepaired } = verdict.findings;
    return [fill(words.lede_unhelpful, { expected: fixed3(expected), unrepaired: fixed3(unrepaired) })];
  }
  const repair = words[f.tolerance ? "lede_repair" : "lede_repair_exact"];
  const values = { ...ends, shares: listed(sharesOf(found)), tolerance: general(f.tolerance) };
  const said = verdict.act ? [fill(repair, values)] : [];
  return verdict.reason === "repair" ? said : [...said, ...outOfReach(found)];
}

/** @param {any} found
 * @returns {any[][]} */
function outOfReach(found) {
  const { f, words, spoken, verdict } = found;
  const ends = endsOf(found);
  const blocked = blockedOf(f);
  const { excess, excess_low, excess_high } = verdict.findings;
  const values = {
    ...ends,
    blocked: { name: spoken[blocked] },
    blocked_cost: fixed3(f.costs[blocked]),
    ceiling: fixed3(Math.max(f.trivial_costs[blocked], f.costs[blocked])),
    short: fixed3(f.smallest_tolerance - f.tolerance),
    tolerance: general(f.tolerance),
    excess: fixed3(excess + f.tolerance),
    excess_low: fixed3(excess_low + f.tolerance),
    excess_high: fixed3(excess_high + f.tolerance),
  };
  const kind = verdict.reason === "infeasible" ? "lede_infeasible" : "lede_uncertain";
  if (f.feasible) return [fill(words[kind], values)];
  const required = f.required_cost + f.tolerance;
  const costly = f.costs.flatMap((/** @type {number} */ cost, /** @type {number} */ i) => (cost > required ? [i] : []));
  const help = { high: namesOf(found, costly), required: roundDown(required), smallest: roundUp(f.smallest_tolerance) };
  return [fill(words[kind], values), fill(words.way_out, help)];
}

/** @param {any} found
 * @returns {any[][]} */
function sharesOf({ f, words, spoken }) {
  const isMany = f.changed.length > MOST_SHARES;
  const most = [...f.changed].sort((a, b) => f.alpha[b] - f.alpha[a]).slice(0, MOST_SHARES - 1);
  const named = isMany ? most : f.changed;
  const shares = named.map((/** @type {number} */ i) =>
    fill(words.share_of, { share: percent1(f.alpha[i]), group: { name: spoken[i] } }),
  );
  const more = String(f.changed.length - named.length);
  return isMany ? [...shares, fill(words.share_of_more, { count: more })] : shares;
}

/** @param {any} found */
function keysOf(found) {
  const { f, m, n, words, spoken, own, verdict } = found;
  const holds = own.disparity && verdict.findings.intervals && verdict.enough;
  const [low, high] = holds ? own.disparity.map(fixed3) : [];
  const level = `${general(100 * (own.confidence ?? 0.95), 4)}\u00a0%`;
  const span = holds ? fill(words.interval, { level, low, high }) : null;
  const gaps = m.map((/** @type {any} */ one) => one.calibration_gap);
  const worst = gaps.indexOf(Math.max(...gaps));
  return [
    { value: fixed3(verdict.findings.difference), label: words.key_difference, note: span },
    { ...reachKey(found), alert: verdict.reason === "infeasible" },
    {
      value: fixed3(gaps[worst]),
      label: words.key_gap,
      note: fill(words.key_gap_note, { group: { name: spoken[worst] } }),
      alert: verdict.reason === "uncalibrated",
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
  const doubt = doubtOf(found);
  if (doubt) return { value: words.key_no, label: words.key_not_advised, note: fill(doubt) };
  if (!f.feasible) {
    const value = fixed3(f.smallest_tolerance - f.tolerance);
    return { value, label: words.key_reach, note: fill(words.key_reach_note) };
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
  const { f, words, verdict } = found;
  if (!f.feasible) return verdict.reason === "infeasible" && verdict.findings.intervals ? words.why_not : words.why_not_measured;
  if (!f.changed.length || doubtOf(found)) return words.why_nothing;
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
