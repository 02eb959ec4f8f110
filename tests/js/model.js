/** @file What the page computes from the tally, in one place for the tests. */

export { jsonText } from "../../src/isocost/reports/page/model/groups.js";
export { cannotCompare, decides, readTally, subset } from "../../src/isocost/reports/page/model/tally.js";
export { costFor, costText } from "../../src/isocost/reports/page/model/costs.js";
export { measures, overall } from "../../src/isocost/reports/page/model/measures.js";
export { feasibility } from "../../src/isocost/reports/page/model/feasibility.js";
export { expected } from "../../src/isocost/reports/page/model/rules.js";
export { withhold } from "../../src/isocost/reports/page/model/withhold.js";
export { changes } from "../../src/isocost/reports/page/model/changes.js";
export { levelCurve, reliability, scoresBySide } from "../../src/isocost/reports/page/model/views.js";
export { commandLine } from "../../src/isocost/reports/page/model/command.js";
