/** @file What the page computes from the tally, in one place.
 *
 * Tests and tools import this file; scripts.py puts the files behind it into the page. */

export { groupName, jsonText, keyOf, visible } from "./model/groups.js";
export { cannotCompare, decides, readTally, rowsOf, subset } from "./model/tally.js";
export { costFields, costFor, costFrom, costText, isPerGroup } from "./model/costs.js";
export { measures, overall } from "./model/measures.js";
export { feasibility, feasibilityText } from "./model/feasibility.js";
export { alphaOf, expected } from "./model/rules.js";
export { withhold } from "./model/withhold.js";
export { equalizeOdds } from "./model/odds.js";
export { coarsen } from "./model/coarsen.js";
export { changes } from "./model/changes.js";
export { levelCurve, plane, reliability, wilson } from "./model/views.js";
export { commandLine, quoted } from "./model/command.js";
