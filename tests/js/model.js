/** @file What the page computes from the tally, in one place for the tests. */

export { jsonText } from "../../src/isocost/page/web/model/groups.js";
export { cannotCompare, decides, readTally, subset } from "../../src/isocost/page/web/model/tally.js";
export { costFor, costText } from "../../src/isocost/page/web/model/costs.js";
export { measures, overall } from "../../src/isocost/page/web/model/measures.js";
export { feasibility } from "../../src/isocost/page/web/model/feasibility.js";
export { expected } from "../../src/isocost/page/web/model/rules.js";
export { withhold } from "../../src/isocost/page/web/model/withhold.js";
export { changes } from "../../src/isocost/page/web/model/changes.js";
export { levelCurve, reliability, scoresBySide } from "../../src/isocost/page/web/model/views.js";
export { commandLine } from "../../src/isocost/page/web/model/command.js";
