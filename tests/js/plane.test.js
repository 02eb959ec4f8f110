import assert from "node:assert/strict";
import { test } from "node:test";
import { feasibility, measures } from "./model.js";
import { planeFigure } from "../../src/isocost/page/web/app/plane.js";
import { badness, bestPlace, boxOf, isStruck, seatsAround } from "../../src/isocost/page/web/app/placing.js";
import { tallyOf, twoGroups } from "./small.js";

const LOOK = { colors: ["#1", "#2"], shapes: ["circle", "square"], ink: "i", muted: "m", line: "l", alert: "red" };
const SIZE = { width: 600, height: 400 };

/** @returns {import("../../src/isocost/page/web/app/placing.js").Crowd} */
function empty() {
  return { width: 200, height: 100, marks: [], strokes: [], boxes: [] };
}

test("a stretch strikes a box that it goes through, and no other", () => {
  const box = { left: 10, right: 20, top: 10, bottom: 20 };
  assert.ok(isStruck({ x: 0, y: 15 }, { x: 30, y: 15 }, box));
  assert.ok(isStruck({ x: 15, y: 0 }, { x: 15, y: 30 }, box));
  assert.ok(isStruck({ x: 12, y: 12 }, { x: 13, y: 14 }, box));
  assert.ok(!isStruck({ x: 0, y: 21 }, { x: 30, y: 21 }, box));
  assert.ok(!isStruck({ x: 0, y: 15 }, { x: 9, y: 15 }, box));
  // Its own box overlaps, but it passes the corner.
  assert.ok(!isStruck({ x: 0, y: 12 }, { x: 12, y: 0 }, box));
});

test("words keep clear of marks, lines, other words and the edge", () => {
  const anchor = { x: 100, y: 50 };
  const box = boxOf(anchor, { align: "left", dx: 14, dy: 0 }, 40);
  assert.deepEqual([box.left, box.right], [114, 154]);
  assert.equal(badness(box, anchor, empty()).score, 0);
  const marked = { ...empty(), marks: [{ x: 150, y: 50, r: 9 }] };
  const struck = { ...empty(), strokes: [{ a: { x: 130, y: 0 }, b: { x: 130, y: 99 }, weight: 40 }] };
  const taken = { ...empty(), boxes: [box] };
  for (const crowd of [marked, struck, taken, { ...empty(), width: 150 }]) {
    assert.ok(badness(box, anchor, crowd).score >= 40);
    const { score, place } = bestPlace(seatsAround(14).map((seat) => ({ at: anchor, seat })), 40, crowd);
    assert.ok(score < 40, String(score));
    assert.notDeepEqual(place.seat, { align: "left", dx: 14, dy: 0 });
  }
});

test("a name that could be another's, or is far away, is tied to its own mark by a line", () => {
  const anchor = { x: 100, y: 50, name: "own" };
  const box = boxOf(anchor, { align: "left", dx: 14, dy: 0 }, 30);
  assert.equal(badness(box, anchor, { ...empty(), marks: [{ ...anchor, r: 9 }] }).tie, null);
  const crowd = { ...empty(), marks: [{ ...anchor, r: 9 }, { x: 158, y: 50, r: 9, name: "other" }] };
  assert.deepEqual(badness(box, anchor, crowd).tie?.b, { x: 114, y: 50 });
  const far = boxOf(anchor, { align: "left", dx: 40, dy: 0 }, 30);
  const { tie, score } = badness(far, anchor, empty());
  assert.deepEqual([tie?.a.x, tie?.b.x], [100, 140]);
  const crossed = { a: { x: 120, y: 0 }, b: { x: 120, y: 99 } };
  assert.ok(badness(far, anchor, { ...empty(), ties: [crossed] }).score > score);
});

/** @param {any} tally
 * @param {any} cost
 * @param {any} [chosen] */
function figureOf(tally, cost, chosen = null) {
  const found = {
    f: feasibility(tally, cost, 0), m: measures(tally, { cost, threshold: 0.5 }), tally, chosen,
    shown: [0, 1], spoken: ["a long name of a group", "another"],
  };
  return planeFigure(found, LOOK, SIZE);
}

test("no name in the plane is struck out by the level of cost", () => {
  for (const [fp, fn] of [[1, 0], [0, 1], [1, 1], [10, 1], [1, 10]]) {
    const cost = { kind: /** @type {const} */ ("weighted"), fp, fn };
    const { data, signals } = figureOf(twoGroups(), cost);
    const { right = 1, high = 1 } = signals;
    /** @param {any} place */
    const pixel = ({ x, y }) => ({ x: (x / right) * SIZE.width, y: SIZE.height * (1 - y / high) });
    const curve = data["levels"]?.map(pixel) ?? [];
    const names = data["texts"]?.filter((text) => text.weight === 600) ?? [];
    assert.ok(names.length >= 2);
    for (const name of names) {
      const box = boxOf(pixel(name), name, 7.4 * name.text.length);
      const isOn = curve.slice(1).some((b, i) => isStruck(curve[i] ?? b, b, box));
      assert.ok(!isOn, `${name.text} at ${fp} : ${fn}`);
      const marks = [...(data["groups"] ?? []), ...(data["needed"] ?? [])].map(pixel);
      assert.ok(!marks.some((mark) => isStruck(mark, mark, box)), name.text);
    }
  }
});

test("arrows begin at the edge of the mark, and short ones are not drawn", () => {
  const cost = { kind: /** @type {const} */ ("fpr") };
  /** @param {number} fpr */
  const moved = (fpr) => {
    const after = [{ generalized_fpr: fpr, generalized_fnr: 0.25 }, { generalized_fpr: 0.4, generalized_fnr: 0.4 }];
    return figureOf(twoGroups(), cost, { after });
  };
  const { data, signals } = moved(0.35);
  assert.equal(data["arrows"]?.length, 1);
  assert.ok(Math.abs(((data["arrows"]?.[0].x - 0.25) / (signals["right"] ?? 1)) * SIZE.width - 9) < 1e-9);
  const near = moved(0.255).data;
  assert.deepEqual([near["arrows"]?.length, near["heads"]?.length], [0, 0]);
});

test("a place far outside the picture is cut off at its edge", () => {
  // One group tells nearly nobody apart: equal false alarms would be far past the end of its line.
  const tally = tallyOf([
    ["a", 0, 0.24], ["a", 0, 0.24], ["a", 0, 0.24], ["a", 1, 0.28],
    ["b", 0, 0.6], ["b", 1, 0.9], ["b", 1, 0.9],
  ], ["a", "b"]);
  const { data, signals } = figureOf(tally, { kind: "fpr" });
  for (const one of [...(data["needed"] ?? []), ...(data["beyond"] ?? []).map((line) => ({ x: line.x2, y: line.y2 }))]) {
    assert.ok(one.x <= (signals["right"] ?? 0) + 1e-12 && one.y <= (signals["high"] ?? 0) + 1e-12);
  }
  assert.equal(data["beyond"]?.length, 1);
  assert.ok(data["texts"]?.some((text) => text.text === "out of reach"));
});
