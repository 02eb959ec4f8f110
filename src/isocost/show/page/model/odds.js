/** @file Equalized odds: turn some scores round until the error rates of all groups agree. */

import { at, fixed4, sum } from "./numbers.js";
import { cannotCompare, decides } from "./tally.js";
import { baseRate, generalizedFnr, generalizedFpr, hardFnr, hardFpr, meanScore, totalsAbove } from "./measures.js";
import { NEAR_CUT, expected, makeRule } from "./rules.js";
import { NOISE, bestFlips } from "./corners.js";

/** @import {Tally} from "./tally.js" */
/** @import {Pair, Turning} from "./corners.js" */
/** @import {Refused, Row, Rule} from "./rules.js" */

/** The rates c_fp, c_fn, FPR and FNR of a group.
 * @typedef {[number, number, number, number]} Rates */

/** How near to 1 the two common rates may add up before the scores are called useless. */
const USELESS = 1e-6;

/** Give every group the same false-positive and false-negative rate by turning scores round.
 *
 * Minimises the sum over groups of FPR + FNR at the threshold; of several optima it takes one that
 * turns few scores round.
 * @param {Tally} tally
 * @param {{threshold?: number, rates?: "generalized" | "hard", salt?: string}} settings
 * @returns {Rule | Refused} */
export function equalizeOdds(tally, { threshold = 0.5, rates = "generalized", salt = "isocost" }) {
  const refused = cannotCompare(tally) ?? undecided(tally, threshold);
  if (refused) {
    const nothing = { smallest_tolerance: null, nearest: null };
    return { infeasible: true, reason: "threshold", message: refused, ...nothing };
  }
  const turnings = turningsOf(tally, threshold, rates === "hard" ? 2 : 0);
  const flips = bestFlips(turnings);
  const rule = makeRule(tally, {
    method: "odds",
    settings: { threshold, rates },
    rows: flips.flatMap((pair, place) => flipRows(tally, place, threshold, pair)),
    notes: [],
    salt,
  });
  return { ...rule, notes: oddsNotes(tally, rule, threshold, rates === "hard" ? 2 : 0) };
}

/** Why scores cannot be told apart at a threshold, itself or turned round; null if they can.
 * @param {Tally} tally
 * @param {number} threshold
 * @returns {string | null} */
function undecided(tally, threshold) {
  const mirror = tally.cuts.find((cut) => Math.abs(cut - (1 - threshold)) <= NEAR_CUT);
  if (decides(tally, threshold) && mirror !== undefined && decides(tally, mirror)) return null;
  return `The page does not know who is on which side of ${threshold} and of 1 - ${threshold}.`;
}

/** The rates of each group.
 * @param {Tally} tally
 * @param {number} threshold
 * @returns {Rates[]} */
function ratesOf(tally, threshold) {
  const above = totalsAbove(tally, threshold);
  return tally.totals.map((sums, place) => {
    const high = at(above, place);
    return [generalizedFpr(sums), generalizedFnr(sums), hardFpr(sums, high), hardFnr(sums, high)];
  });
}

/** What turning round one side or the other does to each group, asked of `expected`.
 * @param {Tally} tally
 * @param {number} threshold
 * @param {0 | 2} equal where the rates to be made equal are
 * @returns {Turning[]} */
function turningsOf(tally, threshold, equal) {
  const now = ratesOf(tally, threshold);
  const above = totalsAbove(tally, threshold);
  const up = ratesOf(turnedRound(tally, threshold, 1), threshold);
  const down = ratesOf(turnedRound(tally, 0, threshold), threshold);
  return now.map((rates, place) => {
    const slopes = [at(up, place), at(down, place)].map((turned) =>
      turned.map((rate, i) => (Math.abs(rate - at(rates, i)) < NOISE ? 0 : rate - at(rates, i))),
    );
    const [high = [], low = []] = slopes;
    const { w } = at(tally.totals, place);
    const selected = sum(at(above, place).w) / (w[0] + w[1]);
    return {
      now: [at(rates, equal), at(rates, equal + 1)],
      up: [at(high, equal), at(high, equal + 1)],
      down: [at(low, equal), at(low, equal + 1)],
      loss: [at(high, 2) + at(high, 3), at(low, 2) + at(low, 3)],
      shares: [selected, 1 - selected],
      most: [high.some(Boolean) ? 1 : 0, low.some(Boolean) ? 1 : 0],
    };
  });
}

/** The tally after every score in [lo, hi) was turned round.
 * @param {Tally} tally
 * @param {number} lo
 * @param {number} hi
 * @returns {Tally} */
function turnedRound(tally, lo, hi) {
  /** @type {Row[]} */
  const rows = tally.groups.map((group) => mirrorRow(group, lo, hi, 1));
  return expected(makeRule(tally, { method: "odds", settings: {}, rows, notes: [] }), tally);
}

/** @param {Row["group"]} group
 * @param {number} lo
 * @param {number} hi
 * @param {number} probability
 * @returns {Row} */
function mirrorRow(group, lo, hi, probability) {
  return { group, lo, hi, action: "mirror", value: null, probability };
}

/** @param {Tally} tally
 * @param {number} place
 * @param {number} threshold
 * @param {Pair} flips
 * @returns {Row[]} */
function flipRows(tally, place, threshold, [up, down]) {
  const group = at(tally.groups, place);
  const rows = [mirrorRow(group, threshold, 1, up), mirrorRow(group, 0, threshold, down)];
  return rows.filter((row) => row.probability > 0);
}

/** What a reader must know: what became of calibration, and whether anything is left.
 * @param {Tally} tally
 * @param {Rule} rule
 * @param {number} threshold
 * @param {0 | 2} equal
 * @returns {string[]} */
function oddsNotes(tally, rule, threshold, equal) {
  const after = expected(rule, tally);
  const notes = rule.rows.length ? [calibrationNote(tally, after, rule)] : [];
  const rates = ratesOf(after, threshold);
  const total = sum(rates.map((r) => at(r, equal) + at(r, equal + 1))) / rates.length;
  if (total >= 1 - USELESS) {
    notes.push(
      `The two common rates add up to ${fixed4(total)}: giving everybody one and the same ` +
        "score is no worse. Nothing is left of what the scores knew.",
    );
  }
  return notes;
}

/** How far each changed group is from its calibrated line, |mu c_fn - (1 - mu) c_fp|.
 * @param {Tally} tally
 * @param {Tally} after
 * @param {Rule} rule
 * @returns {string} */
function calibrationNote(tally, after, rule) {
  const touched = new Set(rule.rows.map((row) => tally.groups.indexOf(row.group)));
  /** @param {Tally} t
   * @param {number} place */
  const distance = (t, place) => {
    const sums = at(t.totals, place);
    return Math.abs(baseRate(sums) - meanScore(sums));
  };
  const worst = [...touched].sort((a, b) => distance(after, b) - distance(after, a) || a - b);
  const told = worst.slice(0, 10).map((place) => {
    const [now, before] = [after, tally].map((t) => fixed4(distance(t, place)));
    return `${now} for ${at(tally.names, place)} (before ${before})`;
  });
  const more = worst.length > 10 ? ` and ${worst.length - 10} more` : "";
  return (
    "Equalized odds gives up calibration. Distance from the calibrated line, " +
    `|mu c_fn - (1 - mu) c_fp|: ${told.join(", ")}${more}.`
  );
}
