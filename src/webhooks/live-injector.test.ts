import assert from "node:assert/strict";
import { test } from "node:test";
import { InjectionError } from "#inject/injector/injection-error.ts";
import { type InjectionTexts, LiveInjector } from "./live-injector.ts";

function live(first: InjectionTexts = {}) {
  const state = { mesh: { trustDomain: "a" }, texts: first, problems: [] as string[] };
  const injector = new LiveInjector({
    mesh: () => state.mesh,
    meshText: (mesh) => JSON.stringify(mesh),
    texts: () => state.texts,
    revision: "r",
    compliancePolicy: "",
    environment: {},
    onProblem: (problem) => void state.problems.push(problem),
  });
  return { state, injector };
}

test("LiveInjector is made once for the same mesh and settings, and anew for others", () => {
  const { state, injector } = live();
  const first = injector.current();
  assert.equal(injector.current(), first);
  state.mesh = { trustDomain: "b" };
  const second = injector.current();
  assert.notEqual(second, first);
  state.texts = { injectConfig: "policy: disabled\ntemplates: {sidecar: 'spec: {}'}\n" };
  assert.equal(injector.current().policy, "disabled");
});

test("LiveInjector keeps what worked when settings are wrong, and says so once", () => {
  const { state, injector } = live();
  const good = injector.current();
  state.texts = { injectConfig: "templates: {sidecar: '{{'}\npolicy: enabled\n" };
  assert.equal(injector.current(), good);
  assert.equal(injector.current(), good);
  assert.equal(state.problems.length, 1);
  assert.match(state.problems[0] ?? "", /template "sidecar" cannot be read/);
});

test("LiveInjector refuses while nothing ever worked", () => {
  assert.throws(() => live({ values: "[" }).injector.current(), InjectionError);
});
