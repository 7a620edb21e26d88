import assert from "node:assert/strict";
import test from "node:test";
import { matchesSelector } from "./label-selector.ts";
import { parseSelector } from "./selector-text.ts";

const LABELS = { app: "web", version: "v1", empty: "" };

function fits(text: string): boolean | string | undefined {
  const selector = parseSelector(text);
  return "wrong" in selector ? selector.wrong : matchesSelector(selector, LABELS);
}

test("parseSelector() reads every form that kubectl takes", () => {
  const fitting = ["app=web", "app==web", "app = web", "version!=v2", "app,!canary", "none!=x", "empty="];
  for (const text of [...fitting, "app in (shop, web),version notin (v2)", "app,version=v1"]) {
    assert.equal(fits(text), true, text);
  }
  for (const text of ["app=shop", "app!=web", "!app", "canary", "app in (a,b)", "app=web,version notin (v1)"]) {
    assert.equal(fits(text), false, text);
  }
});

test("parseSelector() names what it cannot read", () => {
  assert.equal(fits("app=web,,x"), "");
  assert.equal(fits("app=web, a=b=c"), "a=b=c");
  assert.equal(fits("app in web"), "app in web");
  assert.equal(fits("app web"), "app web");
});
