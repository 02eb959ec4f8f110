/** @file What the page computes from the tally, in one place for the tests. */

export { jsonText } from "../../src/isocost/page/web/model/numbers.js";
export { decides, readTally, subset } from "../../src/isocost/page/web/model/tally.js";
export { costFor, costText } from "../../src/isocost/page/web/model/costs.js";
export { blockedOf, feasibility, measures, overall } from "../../src/isocost/page/web/model/measures.js";
export { changes, commandLine, expected, withhold } from "../../src/isocost/page/web/model/rules.js";
export { levelCurve } from "../../src/isocost/page/web/app/plane.js";
