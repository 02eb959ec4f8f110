import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { commandLine, costText, jsonText, quoted } from "./model.js";
import { general, justBelow, roundUp } from "../../src/isocost/reports/page/model/numbers.js";

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
  const columns = { score: "risk", label: "y", group: ["sex", "age band"], weight: null };
  assert.equal(
    commandLine({ command: "audit", cost: { kind: "fpr" }, tolerance: 0.05 }, columns),
    "isocost audit data.csv --score=risk --label=y --group=sex --group='age band' --cost=fpr " +
      "--threshold=0.5 --tolerance=0.05",
  );
  const cost = { kind: /** @type {const} */ ("fpr") };
  assert.equal(
    commandLine(
      { command: "fit", method: "odds", goal: "rates", cost, threshold: 0.3, merge: ["a,b=c"], drop: ["it's"], data: "-x.csv" },
      { score: "s", label: "y", group: ["g"], weight: "w" },
    ),
    "isocost fit ./-x.csv --score=s --label=y --group=g --weight=w --method=odds --threshold=0.3 " +
      "--merge-groups='a,b=c' --drop-group='it'\\''s' --output=rule.json",
  );
  assert.equal(
    commandLine(
      { command: "audit", cost, data: ["my data.csv", "b.csv"], positive: "yes", missing_group: "not known" },
      { score: "s", label: "y", group: ["g"], weight: null },
    ),
    "isocost audit 'my data.csv' b.csv --score=s --label=y --group=g --positive=yes " +
      "--missing-group='not known' --cost=fpr --threshold=0.5 --tolerance=0",
  );
  const perGroup = commandLine({ command: "fit", cost: { kind: "plain", fp: [["a", 1]] } }, {});
  assert.equal(perGroup, null);
});

test("a shell reads every word back as it was", () => {
  const hostile = [
    "$(touch x)", "`id`", "a'b\"c", "; rm -rf /", "--score=x", "", "~", "*", "a\\nb", "!!",
    "\u202eabc", "new\nline", "tab\there", "\x1b[201~id", "é😀", "שלום",
    "a b", "#x", "\u00a0", "'\n\\'",
  ];
  const script = `printf '%s\\0' ${hostile.map(quoted).join(" ")}`;
  const env = { ...process.env, LC_ALL: "C.UTF-8" };
  const words = execFileSync("bash", ["-c", script], { encoding: "utf-8", env }).split("\0");
  assert.deepEqual(words.slice(0, -1), hostile);
  assert.ok(!/[\p{Cc}\p{Cf}]/u.test(hostile.map(quoted).join("")));
});
