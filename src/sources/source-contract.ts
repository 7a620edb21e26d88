/** What every source of configuration has to do, as tests that each of them runs. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { objectKey } from "#config/schema/config-object.ts";
import type { Source } from "#model/ports.ts";
import { formatProblem } from "./report.ts";

/** A source under test and the files it reads. */
export interface SourceUnderTest extends AsyncDisposable {
  readonly source: Source;
  /** Changes files by name; undefined removes one. */
  write(files: Readonly<Record<string, string | undefined>>): void | Promise<void>;
}

/** Opens a source over files; its first snapshot is there when this resolves. */
export type OpenSource = (files: Readonly<Record<string, string>>) => Promise<SourceUnderTest>;

/** Waits until something holds; the test runner's time limit ends the wait if it never does. */
export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await wait(2);
}

/** A Service of one port as YAML. */
export function serviceYaml(name: string, port = 80): string {
  return `apiVersion: v1\nkind: Service\nmetadata:\n  name: ${name}\nspec:\n  ports:\n  - name: http\n    port: ${port}\n`;
}

/** A ServiceEntry of a revision: unlike Services, it belongs to one control plane only. */
export function entryYaml(host: string, revision: string): string {
  return `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata:
  name: ${host}
  labels: {istio.io/rev: ${revision}}
spec:
  hosts: [${host}.com]
  ports:
  - {name: http, number: 80, protocol: HTTP}
`;
}

const METADATA = { name: "p", namespace: "foo" };

/** An AuthorizationPolicy as YAML, with an action and a port that need not be right. */
function policyYaml(name: string, action: string, port: string): string {
  return `apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata:
  name: ${name}
  namespace: foo
spec:
  selector: {matchLabels: {app: web}}
  rules: [{to: [{operation: {ports: ["${port}"]}}]}]
  action: ${action}
`;
}

/** `name:port` of all services but the one that every API server has. */
export function servicesOf({ source }: { readonly source: Source }): string[] {
  const services = source.current().services.filter(({ name }) => name !== "kubernetes");
  return services.map(({ name, ports }) => `${name}:${ports[0]?.port}`);
}

/** Problems in one line each, with file names instead of paths. */
export function problemsOf({ source }: { readonly source: Source }): string[] {
  return source.problems().map((problem) => formatProblem(problem).replaceAll(/(^|\s)\/\S*\//g, "$1"));
}

/** Registers the tests for one source of objects. */
export function testSource(name: string, open: OpenSource): void {
  register(name, CONTRACT, open);
}

/** Registers the tests for one source of texts. */
export function testTextSource(name: string, open: OpenSource): void {
  register(name, { ...CONTRACT, ...TEXT_CONTRACT }, open);
}

function register(name: string, contract: Contract, open: OpenSource): void {
  for (const [what, run] of Object.entries(contract)) test(`${name}: ${what}`, { timeout: 20_000 }, () => run(open));
}

type Contract = Readonly<Record<string, (open: OpenSource) => Promise<void>>>;

const CONTRACT: Contract = {
  "the first snapshot holds the objects of all files": async (open) => {
    await using opened = await open({
      "a.yaml": serviceYaml("a"),
      "b.yml": serviceYaml("b"),
      "c.json": serviceJson("c"),
    });
    assert.deepEqual(servicesOf(opened), ["a:80", "b:80", "c:80"]);
    assert.equal(opened.source.objects().length, 3);
    assert.deepEqual(opened.source.problems(), []);
  },

  "an empty configuration is a mesh as well": async (open) => {
    await using opened = await open({});
    assert.deepEqual(servicesOf(opened), []);
    await opened.write({ "a.yaml": serviceYaml("a") });
    await until(() => servicesOf(opened).length === 1);
  },

  "a changed file makes a snapshot that shares the rest": async (open) => {
    await using opened = await open({ "a.yaml": serviceYaml("a"), "b.yaml": serviceYaml("b") });
    const before = opened.source.current();
    const versions: number[] = [];
    opened.source.subscribe(({ version }) => versions.push(version));
    await opened.write({ "b.yaml": serviceYaml("b", 81) });
    await until(() => versions.length > 0);
    const after = opened.source.current();
    assert.deepEqual(versions, [before.version + 1]);
    assert.deepEqual(servicesOf(opened), ["a:80", "b:81"]);
    assert.equal(after.services[0], before.services[0]);
    assert.equal(after.mesh, before.mesh);
  },

  "a removed file takes its objects with it": async (open) => {
    await using opened = await open({ "a.yaml": serviceYaml("a"), "b.yaml": serviceYaml("b") });
    await opened.write({ "a.yaml": undefined });
    await until(() => servicesOf(opened).join() === "b:80");
  },

  "who has unsubscribed is not called": async (open) => {
    await using opened = await open({});
    let calls = 0;
    const stop = opened.source.subscribe(() => calls++);
    stop();
    await opened.write({ "a.yaml": serviceYaml("a") });
    await until(() => servicesOf(opened).length === 1);
    assert.equal(calls, 0);
  },

  "a text that says the same makes no snapshot": async (open) => {
    await using opened = await open({ "a.yaml": serviceYaml("a"), "b.yaml": serviceYaml("b") });
    const versions: number[] = [];
    opened.source.subscribe(({ version }) => versions.push(version));
    const { version } = opened.source.current();
    await opened.write({ "a.yaml": `# a comment\n${serviceYaml("a")}` });
    await opened.write({ "b.yaml": serviceYaml("b", 81) });
    await until(() => servicesOf(opened).includes("b:81"));
    assert.deepEqual(versions, [version + 1]);
  },
};

/** Where people write text, which may be wrong in more ways than objects that something has looked at. */
const TEXT_CONTRACT: Contract = {
  "several documents of a file, and those of a List, are objects of their own": async (open) => {
    const list = `apiVersion: v1\nkind: List\nitems:\n- ${serviceJson("c")}\n- ${serviceJson("d")}\n- {kind: x}\n`;
    await using opened = await open({ "a.yaml": `${serviceYaml("a")}---\n${serviceYaml("b")}---\n${list}` });
    assert.deepEqual(servicesOf(opened), ["a:80", "b:80", "c:80", "d:80"]);
    assert.deepEqual(problemsOf(opened), ['a.yaml:24: is not an object: "apiVersion" and "kind" are required']);
  },

  "a broken object stays at its last good version and is reported in one line": async (open) => {
    await using opened = await open({ "a.yaml": `${serviceYaml("a")}---\n${serviceYaml("b")}` });
    await opened.write({ "a.yaml": `${serviceYaml("a").replace("80", "eighty")}---\n${serviceYaml("b", 81)}` });
    await until(() => opened.source.problems().length > 0);
    assert.deepEqual(problemsOf(opened), [
      'a.yaml:8: Service/default/a: spec.ports[0].port must be a whole number from -2147483648 to 2147483647, not "eighty"',
    ]);
    assert.deepEqual(servicesOf(opened), ["a:80", "b:81"]);
    await opened.write({ "a.yaml": `${serviceYaml("a", 82)}---\n${serviceYaml("b", 81)}` });
    await until(() => opened.source.problems().length === 0);
    assert.deepEqual(servicesOf(opened), ["a:82", "b:81"]);
  },

  "text that is no YAML leaves all objects of its file where they were": async (open) => {
    await using opened = await open({
      "a.yaml": `${serviceYaml("a")}---\n${serviceYaml("b")}`,
      "c.yaml": serviceYaml("c"),
    });
    await opened.write({ "a.yaml": `${serviceYaml("a", 81)}---\nkind: [\n`, "c.yaml": serviceYaml("c", 82) });
    await until(() => opened.source.problems().length > 0 && servicesOf(opened).includes("c:82"));
    assert.match(problemsOf(opened)[0] ?? "", /^a\.yaml:11: is not YAML: /);
    assert.deepEqual(servicesOf(opened), ["a:81", "b:80", "c:82"]);
  },

  "a file that is broken from the beginning does not hurt the others": async (open) => {
    await using opened = await open({ "a.yaml": "\0\u0001binary", "b.yaml": serviceYaml("b"), "c.yaml": "just text" });
    assert.deepEqual(servicesOf(opened), ["b:80"]);
    assert.deepEqual(problemsOf(opened), [
      "a.yaml:1: is not a text file",
      'c.yaml:1: is not an object: "apiVersion" and "kind" are required',
    ]);
  },

  "an object without a name is refused": async (open) => {
    await using opened = await open({ "a.yaml": serviceYaml('""') });
    assert.deepEqual(problemsOf(opened), ["a.yaml:4: Service/default/: metadata.name is required"]);
    assert.deepEqual(opened.source.objects(), []);
  },

  "of two objects with one name that of the last file counts": async (open) => {
    await using opened = await open({ "b.yaml": `\n${serviceYaml("x", 2)}`, "a.yaml": serviceYaml("x", 1) });
    assert.deepEqual(servicesOf(opened), ["x:2"]);
    assert.deepEqual(problemsOf(opened), ["a.yaml:1: Service/default/x: is defined again in b.yaml:2: ignored"]);
    await opened.write({ "b.yaml": `\n${serviceYaml("x", 3)}` });
    await until(() => servicesOf(opened).join() === "x:3");
    await opened.write({ "b.yaml": undefined });
    await until(() => servicesOf(opened).join() === "x:1");
    assert.deepEqual(problemsOf(opened), []);
  },

  "unknown kinds and fields are warnings with their line, ours are silent": async (open) => {
    const unknown = "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: t}\n";
    const field = serviceYaml("a").replace("spec:", "spec:\n  prots: []");
    const mesh = "apiVersion: mizzen.dev/v1alpha1\nkind: Mesh\nspec: {workloads: 5}\n";
    await using opened = await open({ "a.yaml": `${unknown}---\n${field}---\n${mesh}` });
    assert.deepEqual(problemsOf(opened), [
      'a.yaml:1: Thing/default/t: kind "Thing" of "example.com/v1" is unknown: ignored',
      'a.yaml:10: Service/default/a: spec.prots is not a known field: ignored; did you mean "ports"?',
    ]);
    assert.ok(opened.source.problems().every(({ severity }) => severity === "warning"));
    assert.deepEqual(servicesOf(opened), ["a:80"]);
  },

  "kinds that have no effect yet are reported once each": async (open) => {
    const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n";
    const account = "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: s}\n";
    await using opened = await open({ "a.yaml": `${deployment}---\n${account}---\n${deployment}`, "b.yaml": account });
    assert.deepEqual(problemsOf(opened), [
      'a.yaml:1: kind "Deployment" is not yet supported: ignored',
      'a.yaml:5: kind "ServiceAccount" is not yet supported: ignored',
    ]);
  },

  "what a kind cannot do yet is reported with the object": async (open) => {
    const text = `apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: w}
spec:
  hosts: ["*.a.com"]
  ports: [{name: http, number: 80, protocol: HTTP}]
  resolution: DYNAMIC_DNS
`;
    await using opened = await open({ "a.yaml": text });
    assert.deepEqual(problemsOf(opened), [
      "a.yaml:7: ServiceEntry/default/w: spec.resolution DYNAMIC_DNS is for waypoints, which are not yet supported: proxies cannot reach the hosts",
    ]);
    assert.equal(opened.source.objects().length, 1);
  },

  "objects of another revision are left out": async (open) => {
    const ours = serviceYaml("c").replace("spec:", "  labels: {istio.io/rev: canary}\nspec:");
    const yaml = (...[a, b]: string[]) => `${entryYaml("a", a ?? "")}---\n${entryYaml("b", b ?? "")}---\n${ours}`;
    await using opened = await open({ "a.yaml": yaml("canary", "default") });
    assert.deepEqual(servicesOf(opened), ["b.com:80", "c:80"]);
    await opened.write({ "a.yaml": yaml("default", "canary") });
    await until(() => servicesOf(opened).join() === "a.com:80,c:80");
  },

  "a security object that was never readable denies until it is repaired or deleted": async (open) => {
    await using opened = await open({ "a.yaml": policyYaml("p", "DENY", "65536") });
    const denying = () => opened.source.current().unreadablePolicies.map((policy) => objectKey(policy));
    assert.deepEqual(denying(), ["AuthorizationPolicy/foo/p"]);
    assert.deepEqual(problemsOf(opened), [
      'a.yaml:8: AuthorizationPolicy/foo/p: spec.rules[0].to[0].operation.ports[0] must be a port from 0 to 65535, not "65536"',
      "a.yaml:1: AuthorizationPolicy/foo/p: cannot be read and has no earlier version: it denies all traffic to workloads with app=web in namespace foo until it is repaired or deleted",
    ]);
    await opened.write({ "a.yaml": policyYaml("p", "DENY", "80") });
    await until(() => denying().length === 0);
    assert.deepEqual(opened.source.problems(), []);
    await opened.write({ "b.yaml": policyYaml("q", "DENIED", "80") });
    await until(() => denying().join() === "AuthorizationPolicy/foo/q");
    await opened.write({ "b.yaml": undefined });
    await until(() => denying().length === 0);
  },

  "a security object keeps its last good version": async (open) => {
    await using opened = await open({ "a.yaml": policyYaml("p", "DENY", "80") });
    const [before] = opened.source.current().authorizationPolicies;
    await opened.write({ "a.yaml": policyYaml("p", "DENY", "http") });
    await until(() => opened.source.problems().length > 0);
    assert.deepEqual(opened.source.current().authorizationPolicies, [before]);
    await opened.write({ "a.yaml": policyYaml("p", "DENY", "80").replace("foo\n", "foo\n  oops\n") });
    await until(() => /not YAML/.test(problemsOf(opened)[0] ?? ""));
    assert.deepEqual(opened.source.current().authorizationPolicies, [before]);
    assert.deepEqual(opened.source.current().unreadablePolicies, []);
  },

  "each security object without a readable name denies": async (open) => {
    const nameless = policyYaml("5", "DENY", "80");
    await using opened = await open({ "a.yaml": `${nameless}---\n${nameless.replace("web", "other")}` });
    const selected = opened.source.current().unreadablePolicies.map(({ spec }) => spec.selector?.matchLabels?.app);
    assert.deepEqual(selected, ["web", "other"]);
  },

  "a security object of a list keeps its last good version when a key is given twice": async (open) => {
    const list = (action: string) =>
      `apiVersion: v1\nkind: List\nitems:\n- ${serviceJson("a")}\n- ${JSON.stringify({
        apiVersion: "security.istio.io/v1",
        kind: "AuthorizationPolicy",
        metadata: METADATA,
      })
        .slice(0, -1)
        .concat(`, "spec": {${action} "rules": [{}]}}`)}\n`;
    await using opened = await open({ "a.yaml": list('"action": "DENY",') });
    const [before] = opened.source.current().authorizationPolicies;
    assert.ok(before);
    await opened.write({ "a.yaml": list('"action": "ALLOW", "action": "DENY",') });
    await until(() => opened.source.problems().length > 0);
    assert.deepEqual(opened.source.current().authorizationPolicies, [before]);
    assert.deepEqual(opened.source.current().unreadablePolicies, []);
  },

  "of two objects with one name a later readable one counts, and a later unreadable one denies": async (open) => {
    const [good, bad] = [policyYaml("p", "DENY", "80"), policyYaml("p", "DENY", "http")];
    await using opened = await open({ "a.yaml": bad, "b.yaml": good });
    assert.equal(opened.source.current().unreadablePolicies.length, 0);
    await opened.write({ "c.yaml": bad });
    await until(() => opened.source.current().unreadablePolicies.length === 1);
    assert.equal(opened.source.current().authorizationPolicies.length, 1);
  },

  "security objects of another revision deny nothing": async (open) => {
    const labelled = policyYaml("p", "DENIED", "80").replace("foo\n", "foo\n  labels: {istio.io/rev: canary}\n");
    await using opened = await open({ "a.yaml": labelled });
    assert.deepEqual(opened.source.current().unreadablePolicies, []);
  },

  "a text that is not YAML denies for the security objects that it mentions": async (open) => {
    await using opened = await open({ "a.yaml": policyYaml("p", "DENY", "80").replace("foo\n", "foo\n  oops\n") });
    const [policy] = opened.source.current().unreadablePolicies;
    assert.deepEqual([policy?.metadata.name, policy?.metadata.namespace], ["p", "foo"]);
  },

  "security objects in lists that nobody reads, and with a key that is given twice, deny": async (open) => {
    const policy = JSON.stringify({
      apiVersion: "security.istio.io/v1",
      kind: "AuthorizationPolicy",
      metadata: METADATA,
    });
    const rules = 'rules: [{to: [{operation: {paths: ["/a"]}}]}]';
    const texts = [
      `- ${policy}`,
      `apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List, items: [${policy}]}\n`,
      `apiVersion: security.istio.io/v1\nkind: AuthorizationPolicyList\nitems: [${policy}]\n`,
      `apiVersion: v1\nkind: list\nitems: [${policy}]\n`,
      `${policy.slice(0, -1)}, "spec": {action: DENY, ${rules}, ${rules.replace("/a", "/b")}}}`,
    ];
    for (const text of texts) {
      await using opened = await open({ "a.yaml": text });
      const { unreadablePolicies, authorizationPolicies } = opened.source.current();
      assert.deepEqual(authorizationPolicies, [], text);
      assert.deepEqual(
        unreadablePolicies.map(({ metadata }) => metadata.namespace),
        ["foo"],
        text,
      );
      assert.ok(
        opened.source.problems().some(({ severity }) => severity === "error"),
        text,
      );
    }
  },

  "__proto__ in an object is harmless": async (open) => {
    const text = serviceYaml("a").replace("spec:", "  labels: {__proto__: {x: y}}\nspec:\n  __proto__: {selector: {}}");
    await using opened = await open({ "a.yaml": text, "b.yaml": serviceYaml("b") });
    assert.deepEqual(servicesOf(opened), ["b:80"]);
    assert.equal(Reflect.get({}, "x"), undefined);
    assert.ok(
      problemsOf(opened).includes("a.yaml:5: Service/default/a: metadata.labels.__proto__ is not a usable key"),
    );
  },
};

function serviceJson(name: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Service",
    metadata: { name },
    spec: { ports: [{ name: "http", port: 80 }] },
  });
}
