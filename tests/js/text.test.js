import assert from "node:assert/strict";
import { test } from "node:test";
import { commandLine, costText, jsonText } from "./model.js";
import { general, justBelow, roundUp } from "../../src/isocost/page/web/model/numbers.js";

test("JSON text keeps exact numbers, and nothing that only looks like one", () => {
  const group = { exact: "9007199254740993" };
  const big = { group, more: [1, "<", null, true], none: [], no: {} };
  const text = jsonText(big);
  assert.match(text, /"group": 9007199254740993,/);
  assert.deepEqual(JSON.parse(text), { ...big, group: 9007199254740992 });
  const hostile = { columns: { exact: '1, "rows": []' } };
  assert.deepEqual(JSON.parse(jsonText(hostile)), hostile);
});

test("costs are written as the command line reads them", () => {
  assert.equal(costText({ kind: "fpr" }), "fpr");
  assert.equal(costText({ kind: "plain", fp: 0, fn: 1 }), "fnr");
  assert.equal(costText({ kind: "weighted", fp: 1, fn: 2.5 }), "weighted:1,2.5");
  assert.equal(costText({ kind: "weighted", fp: [["a", 1]], fn: 1 }), "weighted per group");
});

test("numbers as Python writes them", () => {
  assert.equal(justBelow(1), 1 - 2 ** -53);
  assert.deepEqual([0.05, 0, 1e-5, 123456789, 2.5, 100].map((x) => general(x)), [
    "0.05", "0", "1e-05", "1.23457e+08", "2.5", "100",
  ]);
  assert.equal(general(1 / 3, 12), "0.333333333333");
  assert.deepEqual([roundUp(0.05381), roundUp(0.0538)], ["0.0539", "0.0538"]);
});

test("command lines", () => {
  const prepared = { read: "'my data.csv' --positive=yes", drop: ["--drop-group=a", "--drop-group='b c'"] };
  const cost = { kind: /** @type {const} */ ("fpr") };
  assert.equal(
    commandLine({ command: "audit", cost, tolerance: 0.05, off: [1] }, prepared),
    "isocost audit 'my data.csv' --positive=yes --drop-group='b c' --cost=fpr --threshold=0.5 --tolerance=0.05",
  );
  assert.equal(
    commandLine({ command: "fit", method: "odds", goal: "rates", cost, threshold: 0.3 }, prepared),
    "isocost fit 'my data.csv' --positive=yes --method=odds --threshold=0.3 --output=rule.json",
  );
  assert.equal(commandLine({ command: "fit", cost: { kind: "plain", fp: [["a", 1]] } }, prepared), null);
});
