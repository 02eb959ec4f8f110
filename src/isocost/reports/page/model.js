/** @file What the page computes from the tally, in one place.
 *
 * Tests and tools import this file; scripts.py puts the files behind it into the page. */

export { jsonText } from "./model/groups.js";
export { cannotCompare, decides, readTally, subset } from "./model/tally.js";
export { costFor, costText } from "./model/costs.js";
export { measures, overall } from "./model/measures.js";
export { feasibility } from "./model/feasibility.js";
export { expected } from "./model/rules.js";
export { withhold } from "./model/withhold.js";
export { changes } from "./model/changes.js";
export { levelCurve, reliability } from "./model/views.js";
export { commandLine, quoted } from "./model/command.js";
