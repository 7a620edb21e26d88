import assert from "node:assert/strict";
import { test } from "node:test";
import { RE2JS } from "re2js";
import { regexCost } from "./regex-cost.ts";

const EXPRESSIONS = [
  "abc",
  "^/api/v[0-9]+/(users|orders)/[^/]+$",
  "(?i)^(.*?;)?(user=jason)(;.*)?$",
  "a{1000}",
  "(ab){1000}",
  "(a{100}){10}",
  "((a{10}){10}){10}",
  `(${"a".repeat(1000)}){100}`,
  `(${"\\pL".repeat(30)}){100}`,
  "(a|b|cc|dd){1000}",
  `(?:${"a?".repeat(500)}){10}`,
  "(x*){1000}",
  "x{0,1000}y{3,}",
  "(.{0,30}){0,30}",
  "[[:alpha:]-z]{20}",
  "(?P<first>x)(?P<second>y){7}",
  "\\Qa{1000}\\E{3}",
  "(a|".repeat(250) + ")".repeat(250),
  "[]a]{100}[^]b]{100}",
  "{,5}{a}",
];

test("regexCost() is at least the size of the program, and in proportion to it", () => {
  for (const regex of EXPRESSIONS) {
    const [cost, size] = [regexCost(regex), RE2JS.compile(regex).programSize()];
    assert.ok(cost >= size, `${regex}: ${cost} < ${size}`);
    assert.ok(cost <= 3 * size + 30 + 150 * regex.split("\\p").length, `${regex}: ${cost} is far above ${size}`);
  }
});

test("regexCost() counts classes that take long to build, although they leave one instruction", () => {
  assert.ok(regexCost(`[${"\\pL".repeat(300)}]`) > 30_000);
  assert.ok(regexCost(`(?i)${"[B-\u{1E900}]".repeat(50)}`) > 100_000);
  assert.ok(regexCost(`(?i)${"[\\x{42}-\\x{1E900}]".repeat(50)}`) > 100_000);
  assert.ok(regexCost("(?i)[A-Z0-9._%+-]+@[a-z0-9.-]{2,}") < 100);
});

test("regexCost() takes time in proportion to the text, valid or not", () => {
  const units = ["(?i)[a-", "{", "{1", "(?P<a", "[:a", "[", "(?a", "\\Q", "\\", "a{1,"];
  for (const unit of units) {
    const start = process.cpuUsage();
    assert.ok(regexCost(unit.repeat(100_000)) >= 0);
    const { user, system } = process.cpuUsage(start);
    assert.ok(user + system < 1_000_000, `${unit}: ${user + system} us`);
  }
});
