/** @file The verdict, the numbers under it and the explanation, for any settings.
 *
 * Which sentences are said follows from the tables of Python's judgement and wording; here are the
 * fields that they are filled with. */

import { general } from "../model/numbers.js";
import { blockedOf, withheld } from "../model/measures.js";
import { counted, figuresFor, figuresWith, fill, isMany, listed, percent1, plainText } from "./say.js";

/** @typedef {Record<string, number | boolean | null>} Findings */

/** @typedef {{answers: [string, [any, string, string, number | string][], any][], reasons: [string, Record<string,
 *   any>, boolean][], slack: number}} Tables */

/** The answer to each question, the reason of the verdict and whether a repair is advised.
 * @param {Tables} tables
 * @param {Findings} findings numbers that are not known are null
 * @returns {Record<string, any>} */
export function judge({ answers, reasons, slack }, findings) {
  /** @param {string | number} key */
  const numberOf = (key) => (typeof key === "string" ? Number(findings[key] ?? NaN) : key);
  /** @type {Record<string, any>} */
  const given = {};
  for (const [question, comparisons, otherwise] of answers) {
    const holds = comparisons.find(([, left, compare, right]) => {
      const [value, bound] = [numberOf(left), numberOf(right) + slack];
      return compare === ">" ? value > bound : value <= bound;
    });
    given[question] = holds ? holds[0] : otherwise;
  }
  const settled = reasons.find(([, needed]) =>
    Object.entries(needed).every(([name, value]) => given[name] === value),
  );
  if (!settled) throw new Error("no reason fits");
  return { ...given, reason: settled[0], act: settled[2] };
}

/** Groups that differ by this much still differ in whole percents. */
const CLEAR = 0.03;

const MOST_TIMES = 1000;

/** The sentences of the page for the results; Python says the same at the audit's settings.
 * @param {any} results what main.js computed
 * @returns {any} */
export function sentencesOf(results) {
  const verdict = verdictOf(results);
  // Why the data do not support a repair; nothing if they do, or if none would do it.
  const doubt = results.words[`key_${verdict.reason}`] ?? "";
  const judged = { ...results, figures: figuresFor(results), verdict, doubt };
  const fields = fieldsOf(judged);
  return {
    verdict: headlineOf(judged, fields),
    next: fill(judged.words[`next_${judged.verdict.reason}`], fields),
    ledes: detailsOf(judged, fields),
    keys: keysOf(judged, fields),
    geometry: geometryOf(judged, fields),
    why: whyOf(judged),
    noneAdvised: doubt ? plainText(fill(judged.words.none_advised, { why: doubt })) : "",
    isAlarm: judged.verdict.reason === "infeasible",
  };
}

/** What the numbers say, in codes; without evidence about the cost the bounds are the numbers.
 * @param {any} results @returns {any} */
export function verdictOf(results) {
  const { f, shown, own, judgement, ofCost, called } = results;
  const floors = examinedOf(results, "gap_low");
  const [bias_low, bias_high] = shown.length === called.length ? own.bias : [null, null];
  const isKnown = own.confidence !== null && ofCost !== null;
  const shift = f.tolerance - own.tolerance;
  const difference = f.target_cost - Math.min(...f.costs);
  // How far the highest cost is above what another group can reach, less the tolerance.
  const ceilings = f.costs.map((/** @type {number} */ cost, /** @type {number} */ i) => (i === f.target ? Infinity : Math.max(cost, f.trivial_costs[i])));
  const excess = f.target_cost - Math.min(...ceilings) - f.tolerance;
  const { difference_low, difference_high, excess_low, excess_high, expected, unrepaired } = ofCost?.findings ?? {};
  const findings = {
    groups: Math.min(shown.length, own.groups),
    gap_low: floors.find(({ base_rate }) => base_rate % 1)?.gap_low ?? 0,
    gap_high: examinedOf(results, "gap_high")[0]?.gap_high ?? null,
    labels_low: floors.find(({ base_rate }) => base_rate % 1 === 0)?.gap_low ?? 0,
    bias_low,
    bias_high,
    gap: own.confidence === null ? (examinedOf(results, "gap")[0]?.gap ?? null) : null,
    change: isKnown ? ofCost.findings.change : null,
    difference,
    difference_low: isKnown ? difference_low : difference,
    difference_high: isKnown ? difference_high : null,
    tolerance: f.tolerance,
    excess,
    excess_low: isKnown ? excess_low - shift : excess,
    excess_high: isKnown ? excess_high - shift : excess,
    intervals: isKnown,
    expected: shift ? null : expected,
    unrepaired: shift ? null : unrepaired,
  };
  const highest = isKnown ? ofCost.highest : [f.target];
  return { ...judge(judgement, findings), findings, highest };
}

/** A group whose calibration is judged.
 * @typedef {{name: string, mean_score: number, base_rate: number, gap: number, gap_low: number, gap_high: number | null}} Examined */

/** The groups whose calibration is judged, the worst first: those shown, and those that the page does not hold.
 * @param {any} results @param {"gap" | "gap_low" | "gap_high"} by @returns {Examined[]} */
function examinedOf({ shown, own, called }, by) {
  const examined = own.examined.filter((/** @type {Examined} */ _, /** @type {number} */ i) => i >= called.length || shown.includes(i));
  return examined.sort((/** @type {Examined} */ a, /** @type {Examined} */ b) => (b[by] ?? -1) - (a[by] ?? -1));
}

/** @param {any} results @returns {Record<string, any>} */
function fieldsOf(results) {
  const { f, words, spoken, own, ofCost, state, verdict, figures, repairs } = results;
  const { findings } = verdict;
  const [low, blocked, required] = [f.costs.indexOf(Math.min(...f.costs)), blockedOf(f), f.required_cost + f.tolerance];
  const spans = ofCost && own.confidence !== null ? (spoken.length > 2 ? ofCost.disparity : ofCost.difference) : [findings.difference, findings.difference];
  const isReconcilable = results.isOwn ? own.reconcilable : Boolean(repairs?.find((/** @type {any} */ one) => one.key === "reconcile" && !one.at)?.rule);
  const fields = {
    ...words,
    ...endsOf(results, low),
    count: String(spoken.length),
    tolerance: figures.tolerance(f.tolerance),
    threshold: general(state.threshold),
    candidates: namesOf(results, verdict.highest.map((/** @type {number} */ i) => spoken[i]), words.or),
    changed: f.changed.length === 1 ? { name: spoken[f.changed[0]] } : fill(words.several, { count: String(f.changed.length) }),
    shares: sharesOf(results, f.alpha),
    ...ifCalibrated(results),
    off: namesOf(results, miscalibrated(results).map(({ name }) => name)),
    ...own.between,
    difference: figures.difference(findings.difference),
    lowest_cost: figures.cost(f.costs[low]), highest_cost: figures.cost(f.target_cost),
    more_data: moreData(results, findings, ofCost?.stretch),
    costly: namesOf(results, f.costs.flatMap((/** @type {number} */ cost, /** @type {number} */ i) => (cost > required ? [spoken[i]] : []))),
    smallest: figures.enough(f.smallest_tolerance),
    blocked: { name: spoken[blocked] }, blocked_cost: figures.cost(f.costs[blocked]),
    ceiling: figures.cost(Math.max(f.trivial_costs[blocked], f.costs[blocked])),
    short: figures.difference(f.smallest_tolerance - f.tolerance),
    expected: figures.difference(findings.expected ?? Number.NaN),
    unrepaired: figures.difference(findings.unrepaired ?? Number.NaN),
    excess: figures.difference(findings.excess + f.tolerance),
    excess_low: figures.difference(findings.excess_low + f.tolerance), excess_high: figures.difference(findings.excess_high + f.tolerance),
    limit: `${general(100 * results.judgement.calibrated)} points`,
    level: `${general(100 * (own.confidence ?? 0.95), 4)}\u00a0%`,
    min_group: counted(own.min_group), min_label: String(own.min_label),
    large: words[findings.groups === 1 ? "few_one" : "few_none"],
    span_low: figures.bare(spans[0]), span_high: figures.difference(spans[1]),
  };
  const decisions = isReconcilable ? fill(words.next_decisions, fields) : "";
  return { ...fields, decisions };
}

/** How many people would settle whether costs differ beyond the tolerance; see more_data in Python.
 * @param {any} results @param {any} findings @param {number} stretch @returns {string} */
function moreData({ words, judgement }, { difference, difference_high, tolerance }, stretch) {
  const away = difference - tolerance;
  if (!tolerance && away <= judgement.slack) return words.more_data_same;
  if (difference_high === null) return words.more_data_some;
  const times = (((difference_high - difference) * (away > 0 ? stretch : 1)) / Math.max(Math.abs(away), judgement.slack)) ** 2;
  return times > MOST_TIMES ? words.more_data_none : plainText(fill(words.more_data, { times: String(Math.max(2, Math.ceil(times))) }));
}

/** What calibration does to the costs, where that is known.
 * @param {any} results @returns {Record<string, any>} */
function ifCalibrated(results) {
  const { f, spoken, ofCost, figures, verdict } = results;
  const found = ofCost?.recalibrated;
  if (!verdict.findings.intervals || !found) return {};
  const [[one, other], [low, high]] = [found.between, found.change];
  /** @param {any} costs */
  const apart = (costs) => costs[one] - costs[other];
  const [now, then] = [apart(f.costs), apart(found.costs)];
  return {
    one: { name: spoken[one] }, other: { name: spoken[other] }, is_turned: then < 0,
    now: figures.difference(now), then: figures.difference(Math.abs(then)), by: figures.difference(then - now),
    by_low: figures.bare(low), by_high: figures.difference(high),
    shares_then: sharesOf(results, withheld(found.costs, f.trivial_costs, f.tolerance).alpha),
  };
}

/** @param {any} results @param {number} low */
function endsOf({ f, spoken, figures }, low) {
  const isScore = f.cost.kind === "fpr" || f.cost.kind === "fnr";
  const isClear = figures.decimals === 1 && isScore && f.target_cost - f.costs[low] >= CLEAR;
  const shown = isClear ? figuresWith(0, true) : figures;
  // A miss is a low score: what people were given is what is left of 1.
  const [high_value, low_value] = [f.target_cost, f.costs[low]].map((cost) => shown.cost(f.cost.kind === "fnr" ? 1 - cost : cost));
  return { high: { name: spoken[f.target] }, low: { name: spoken[low] }, high_value, low_value };
}

/** The groups that are shown to be off, the worst first.
 * @param {any} results @returns {Examined[]} */
function miscalibrated(results) {
  return examinedOf(results, "gap_low").filter(({ gap_low }) => gap_low > results.judgement.calibrated);
}

/** What a repair does that was chosen is part of the headline, unless none is advised.
 * @param {any} results @param {Record<string, any>} fields @returns {any[]} */
function headlineOf(results, fields) {
  const { f, words, own, verdict, chosen, figures, spoken, doubt } = results;
  const { reason } = verdict;
  const off = miscalibrated(results);
  let form = reason === "unreachable" ? "uncertain" : reason === "one_label" ? "uncalibrated" : reason;
  if (f.tolerance && form === "repair") form = "closer";
  if (form === "unestablished" && f.tolerance) form = "unsettled";
  if (form === "unestablished" && !verdict.differs) form = "same";
  if (reason === "uncalibrated" && fields["then"]) form = fields["is_turned"] ? "turned" : "moved";
  if (form === "uncalibrated" && off.length < 2) form = off.length ? "uncalibrated_one" : "uncalibrated_between";
  let gap = fill(words[`gap_${f.cost.kind}`], fields);
  if (spoken.length > 2) gap = fill(words.of_many, { ...fields, gap });
  const all = { ...fields, ...(off[0] ? meansOf(results, off[0]) : {}), gap, alike: fill(words[`alike_${f.cost.kind}`], fields) };
  const isOther = chosen?.rule && chosen.key !== "withhold" && !doubt && reason !== "equal";
  const kind = chosen?.changes?.handed_over ? "deferring" : chosen?.goal === "rates" ? "rates" : "cost";
  const headline = !isOther ? fill(words[`headline_${form}`], all) : fill(words[`chosen_${kind}`], {
    ...all, repair: { name: chosen.label }, after: figures.difference(chosen.disparity),
    odds: `${figures.points(chosen.odds)} points`, share: percent1(chosen.changes.changed),
  });
  const isCheckable = own.confidence !== null && form !== "same" && !["few", "uncalibrated", "one_label"].includes(reason);
  return verdict.findings.intervals || !isCheckable ? headline : fill(words.as_measured, { headline });
}

/** @param {any} results @param {Examined} one */
function meansOf({ figures }, { mean_score, base_rate }) {
  return { mean_score: figures.percent(mean_score), base_rate: figures.percent(base_rate) };
}

/** @param {any} results @param {string[]} names @param {string} [word] */
function namesOf({ words, judgement }, names, word) {
  if (names.length > judgement.named) return fill(word ? words.any_of : words.several, { count: String(names.length) });
  return listed(names.map((name) => [{ name }]), word);
}

/** @param {any} results @param {Record<string, any>} fields @returns {any[][]} */
function detailsOf(results, fields) {
  const { words, verdict, judgement, own, spoken, figures } = results;
  return judgement.details[verdict.reason].flatMap((/** @type {string} */ name) => {
    if (name === "off") return calibrationOf(results, fields);
    if (name === "same") {
      const isSaid = verdict.same !== "unknown" && !miscalibrated(results).length;
      return isSaid ? [fill(words[`same_${verdict.same}`], fields)] : [];
    }
    if (name === "highest" && verdict.highest.length < 2) return [];
    if (name === "helps") return verdict.helps === "yes" ? [fill(words.helps_yes, fields)] : [];
    if (name === "recalibrated") return fields["then"] ? [fill(words.recalibrated, fields)] : [];
    if (name === "calibrated") {
      if (verdict.calibrated === "no") return fields["then"] ? [fill(words.calibrated_no, fields)] : [];
      if (verdict.calibrated === "yes") return [fill(words.calibrated_yes, fields)];
      const isKnown = own.confidence !== null;
      const kind = isKnown ? "gap_high" : "gap";
      const [worst] = examinedOf(results, kind);
      const gap = `${figures.points(worst?.[kind] ?? Number.NaN)} points`;
      return [fill(words[isKnown ? "calibrated_unknown" : "calibrated_measured"], { ...fields, gap, group: { name: worst?.name ?? "" } })];
    }
    if (name !== "difference") return [fill(words[name], fields)];
    const form = !verdict.findings.intervals ? "_measured" : spoken.length > 2 ? "_many" : "";
    return [fill(words[`difference${form}`], fields)];
  });
}

/** @param {any} results @param {Record<string, any>} fields @returns {any[][]} */
function calibrationOf(results, fields) {
  const { words, figures, judgement } = results;
  const off = miscalibrated(results);
  const said = off.slice(0, judgement.named).map((one) =>
    fill(words.off_group, {
      ...fields, ...meansOf(results, one), group: { name: one.name },
      gap: `${figures.points(one.gap)} points`, floor: `${figures.points(one.gap_low)} points`,
    }),
  );
  if (off.length > judgement.named) said.push(fill(words.off_more, { count: String(off.length - judgement.named) }));
  return said;
}

/** @param {any} results @param {number[]} alpha @returns {any} */
function sharesOf({ words, spoken, judgement }, alpha) {
  const changed = alpha.flatMap((share, i) => (share > 0 ? [i] : []));
  if (!changed.length) return words.nobody;
  /** @param {number} i */
  const shareOf = (i) => alpha[i] ?? 0;
  if (Math.max(...changed.map(shareOf)) > 1) return words.no_share;
  const isLong = changed.length > judgement.shares;
  const named = isLong ? [...changed].sort((a, b) => shareOf(b) - shareOf(a)).slice(0, judgement.shares - 1) : changed;
  const shares = named.map((i) => fill(words.share_of, { share: percent1(shareOf(i)), group: { name: spoken[i] } }));
  const more = String(changed.length - named.length);
  return listed(isLong ? [...shares, fill(words.share_of_more, { count: more })] : shares);
}

/** @param {any} results @param {Record<string, any>} fields */
function keysOf(results, fields) {
  const { all, words, ofCost, verdict, figures, chosen } = results;
  const isKnown = ofCost?.disparity && verdict.findings.intervals && verdict.enough;
  const [low, high] = isKnown ? ofCost.disparity.map(figures.bare) : [];
  const { level } = fields;
  const [worst] = examinedOf(results, "gap");
  const isOther = chosen && chosen.key !== "withhold";
  const expected = isOther ? (results.isOwn ? results.outlooks?.[chosen.label] : null) : verdict.findings.expected;
  const repair = { name: chosen?.label ?? words.methods?.withhold.label ?? "" };
  const tiles = [
    { value: counted(all.n), label: plainText(fill(words.key_people, fields)), note: fill(words.key_people_note, fields) },
    {
      value: `${figures.points(worst?.gap ?? Number.NaN)} points`, label: words.key_gap,
      note: fill(words.key_gap_note, { group: { name: worst?.name ?? "" } }), alert: verdict.calibrated === "no",
    },
    { value: fields["difference"], label: words.key_difference, note: isKnown ? fill(words.interval, { level, low, high }) : null },
    { ...reachKey(results), alert: verdict.reason === "infeasible" && !(isOther && chosen.rule) },
  ];
  if (typeof expected !== "number") return tiles;
  const unrepaired = figures.difference(isOther ? verdict.findings.difference : verdict.findings.unrepaired);
  const note = fill(words.key_new_note, { repair, unrepaired });
  return [...tiles, { value: figures.difference(expected), label: words.key_new, note }];
}

/** @param {any} results */
function reachKey({ f, words, spoken, figures, chosen, doubt }) {
  if (doubt) return { value: words.key_no, label: words.key_not_advised, note: fill(doubt) };
  if (chosen?.rule && chosen.key !== "withhold") {
    const note = fill(words.key_changed_note, { repair: { name: chosen.label } });
    return { value: percent1(chosen.changes.changed), label: words.key_changed, note };
  }
  if (!f.feasible) {
    const value = figures.difference(f.smallest_tolerance - f.tolerance);
    return { value, label: words.key_reach, note: fill(words.key_reach_note) };
  }
  if (!f.changed.length) return { value: "0", label: words.key_nothing, note: fill(words.key_nothing_note) };
  const most = f.changed.reduce((/** @type {number} */ a, /** @type {number} */ b) => (f.alpha[b] > f.alpha[a] ? b : a));
  const kind = f.tolerance ? "closer" : "withheld";
  const note = fill(words[`key_${kind}_note`], { group: { name: spoken[most] } });
  return { value: percent1(f.alpha[most]), label: words.key_withheld, note };
}

/** @param {any} results @param {Record<string, any>} fields */
function geometryOf({ f, words, chosen, shown, judgement }, fields) {
  if (isMany({ shown, judgement })) return [fill(words.geometry_rows)];
  const within = f.tolerance ? fill(words.within, fields) : "";
  const move = !f.feasible ? "infeasible" : f.changed.length ? "feasible" : "equal";
  return ["axes", "line", move, chosen?.changes?.handed_over ? "deferring" : "both"].map((name) => fill(words[`geometry_${name}`], { ...fields, within }));
}

/** @param {any} results @returns {string} */
function whyOf({ f, words, verdict, doubt }) {
  if (!f.feasible) return verdict.reason === "infeasible" && verdict.findings.intervals ? words.why_not : words.why_not_measured;
  if (!f.changed.length || doubt) return words.why_nothing;
  return f.tolerance ? words.why_closer : words.why_equal;
}
