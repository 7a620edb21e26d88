import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { styleFor } from "#lib/print/style.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { kubeInjectCommand } from "./kube-inject-command.ts";

const DEPLOYMENT = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web:1}]}
`;

describe("mizzen kube-inject", () => {
  let root: string;
  let printed: string;
  let said: string;
  const file = (name: string, text: string) => {
    const path = join(root, name);
    writeFileSync(path, text);
    return path;
  };

  before(() => {
    root = mkdtempSync(join(tmpdir(), "mizzen-inject-"));
    file("web.yaml", DEPLOYMENT);
  });
  after(() => rmSync(root, { recursive: true }));
  beforeEach(() => {
    printed = "";
    said = "";
  });

  async function run(args: readonly string[], env: Terminal["env"] = {}): Promise<number> {
    const terminal: Pick<Terminal, "env" | "style" | "isScreen" | "print" | "say"> = {
      env,
      style: styleFor({}, {}),
      isScreen: false,
      print: (text) => {
        printed += text;
      },
      say: (line) => {
        said += `${line}\n`;
      },
    };
    await kubeInjectCommand(terminal as Terminal)
      .exitOverride()
      .parseAsync(args, { from: "user" });
    const { exitCode } = process;
    process.exitCode = 0;
    return Number(exitCode);
  }

  test("prints the workload with a proxy", async () => {
    assert.equal(await run(["-f", join(root, "web.yaml")]), 0);
    assert.match(printed, /name: istio-init\n/);
    assert.match(printed, /image: docker.io\/istio\/proxyv2:1\.29\.6\n/);
    assert.doesNotMatch(printed, /restartPolicy: Always/);
  });

  test("makes native sidecars where the environment says so", async () => {
    await run(["-f", join(root, "web.yaml")], { ENABLE_NATIVE_SIDECARS: "true" });
    assert.match(printed, /restartPolicy: Always/);
  });

  test("takes settings from files and writes to one", async () => {
    const output = join(root, "out.yaml");
    const settings = [
      ["--meshConfigFile", file("mesh.yaml", "trustDomain: td1\n")],
      ["--valuesFile", file("values.json", '{"global": {"hub": "h", "tag": "t"}}')],
      [
        "--injectConfigFile",
        file(
          "template.yaml",
          "metadata: {labels: {image: {{ .ProxyImage }}, td: {{ .MeshConfig.TrustDomain }}, rev: {{ .Revision }}}}",
        ),
      ],
    ].flat();
    await run(["-f", join(root, "web.yaml"), "-o", output, "-r", "r1", ...settings]);
    assert.equal(printed, "");
    assert.match(readFileSync(output, "utf8"), /image: h\/proxyv2:t\n {8}rev: r1\n {8}td: td1\n/);
  });

  test("takes values and mesh config from an operator file", async () => {
    const operator = file(
      "iop.yaml",
      "kind: IstioOperator\nspec: {tag: t9, meshConfig: {trustDomain: td2}, values: {global: {hub: h9}}}\n",
    );
    await run(["-f", join(root, "web.yaml"), "--operatorFileName", operator]);
    assert.match(printed, /image: h9\/proxyv2:t9\n/);
    assert.match(printed, /name: TRUST_DOMAIN\n +value: td2\n/);
  });

  test("names the file of settings that are wrong, and the one that it cannot write", async () => {
    const values = file("wrong-values.yaml", "a: [");
    assert.equal(await run(["-f", join(root, "web.yaml"), "--valuesFile", values]), 1);
    assert.match(said, /Cannot use the settings of injection \(.*wrong-values\.yaml\): values: line 1 is not YAML/);
    assert.equal(await run(["-f", join(root, "web.yaml"), "-o", join(root, "none/out.yaml")]), 1);
    assert.match(said, /Cannot write .*none\/out\.yaml: ENOENT/);
  });

  test("names what it leaves out and what is wrong", async () => {
    const host = file("host.yaml", DEPLOYMENT.replace("spec: {containers", "spec: {hostNetwork: true, containers"));
    assert.equal(await run(["-f", host]), 0);
    assert.match(said, /Skipping injection because Deployment "web" has host networking enabled/);
    assert.notEqual(await run(["-f", join(root, "none.yaml")]), 0);
    assert.match(said, /Cannot read .*none\.yaml/);
    assert.equal(await run(["-f", file("bad.yaml", "kind: Deployment\nspec: {replicas: x}\n")]), 1);
    assert.match(said, /spec\.replicas must be a whole number/);
    assert.equal(await run(["-f", host, "--valuesFile", file("v.yaml", "[")]), 1);
    assert.equal(await run(["-f", host, "--meshConfigFile", file("m.yaml", "trustDomain: [1]")]), 1);
    assert.equal(await run(["-f", host, "--operatorFileName", host]), 1);
    await assert.rejects(run([]), /required option/);
  });
});
