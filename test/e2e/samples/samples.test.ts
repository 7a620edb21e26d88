/** What the READMEs of the samples promise, one mesh after the other. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { globSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import test from "node:test";
import { promisify } from "node:util";
import { startMesh } from "#bin/mesh.ts";
import { errorText } from "#lib/mesh-error.ts";
import { machineLab } from "../../support/machine-lab.ts";
import { MIZZEN, meshUnavailable } from "../../support/mesh-run.ts";

const ROOT = join(import.meta.dirname, "../../..");
const skip = meshUnavailable();
const run = promisify(execFile);

/** The mesh of a sample. */
function sample(name: string) {
  return startMesh(join(ROOT, "samples", name));
}

/** Waits until the condition holds. */
async function eventually(condition: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 60_000;
  while (!(await condition())) assert.ok(performance.now() < end, "in vain");
}

test("every sample has a README that says how to start it, and is tried here or in a test of its own", async () => {
  const names = globSync("samples/*/mesh.yaml", { cwd: ROOT }).map((file) => basename(dirname(file)));
  const tests = await readFile(import.meta.filename, "utf8");
  for (const name of names) {
    const readme = await readFile(join(ROOT, "samples", name, "README.md"), "utf8");
    if (name === "bookinfo") continue;
    assert.ok(readme.includes(`bin/mizzen up samples/${name} --detach`), `${name}: how to start it`);
    assert.ok(readme.trim().split("\n").length <= 14, `${name}: a short README`);
    assert.ok(tests.includes(`test("${name}: `), `${name} is not tried`);
  }
});

test("httpbin: identities of both sides are seen, and the gateway serves its host", { skip }, async () => {
  await using mesh = await sample("httpbin");
  const answer = await mesh.workload("sleep").fetch("http://httpbin:8000/headers");
  assert.match(await answer.text(), /URI=spiffe:\/\/cluster.local\/ns\/default\/sa\/sleep/);
  const { stdout } = await run("curl", ["-sS", "-H", "Host: httpbin.example.com", `${await mesh.url()}/hostname`]);
  assert.equal(stdout, '"httpbin"');
});

test("mirroring: v1 answers, v2 gets a copy", { skip }, async () => {
  await using mesh = await sample("mirroring");
  for (let i = 0; i < 3; i++) {
    const answer = await mesh.workload("sleep").fetch(`http://echo:8000/hello-${i}`);
    assert.equal(await answer.text(), `echo-v1 got GET /hello-${i}\n`);
  }
  await eventually(async () => (await mesh.workload("echo-v2").logs()).includes("GET /hello-2 for echo"));
});

test("egress: what a ServiceEntry names is reached, and nothing else", { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "sample-"));
  const state = join(folder, "state");
  await run("chmod", ["755", folder]);
  {
    await using machine = await machineLab(folder);
    const mizzen = (...args: readonly string[]) => machine.run(MIZZEN, ...args, "--state", state);
    const curl = async (host: string) => {
      const command = ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", `http://${host}`];
      return machine.run(MIZZEN, "exec", "--state", state, "sleep", "--", ...command).catch(errorText);
    };
    await mizzen("up", "samples/egress", "--detach", "--egress", "--name", basename(folder).toLowerCase());
    try {
      assert.equal(await curl("www.example.com"), "200");
      assert.equal(await curl("other.example.com"), "502");
      await eventually(async () => /outbound\|80\|\|www\.example\.com/.test(await mizzen("logs", "sleep", "--access")));
    } finally {
      await mizzen("down");
    }
  }
  await rm(folder, { recursive: true });
});

test("tcp: connections are split, encrypted, and counted", { skip }, async () => {
  await using mesh = await sample("tcp");
  const client = mesh.workload("client");
  const { stdout, stderr } = await client.exec(["python3", "client.py", "tcp-echo", "9000", "hello", "100"]);
  const lines = stdout.trim().split("\n");
  const count = (line: string) => lines.filter((each) => each === line).length;
  assert.equal(count("one hello") + count("two hello"), 100, stdout + stderr);
  assert.ok(count("one hello") > 55 && count("two hello") > 3, stdout);
  await eventually(async () => /outbound\|9000\|v2\|tcp-echo/.test(await client.logs("proxy")));
  const spec = { mtls: { mode: "STRICT" } };
  const strict = {
    apiVersion: "security.istio.io/v1",
    kind: "PeerAuthentication",
    metadata: { name: "default" },
    spec,
  };
  await mesh.apply(strict);
  const encrypted = await client.exec(["python3", "client.py", "tcp-echo", "9000", "secret"]);
  assert.match(encrypted.stdout, /^(one|two) secret$/m, "the connections are mutual TLS already");
});

test("grpc: calls of one connection reach both replicas, and faults have a gRPC status", { skip }, async () => {
  await using mesh = await sample("grpc");
  const client = mesh.workload("client");
  const { stdout, stderr } = await client.exec(["node", "client.ts", "World", "20"]);
  const answers = new Set(stdout.trim().split("\n"));
  assert.deepEqual(answers, new Set(["Hello World, from greeter-1", "Hello World, from greeter-2"]), stderr);
  await mesh.apply(await readFile(join(ROOT, "samples/grpc/faults/unavailable.yaml"), "utf8"));
  assert.match((await client.exec(["node", "client.ts"])).stdout, /^failed with status 14: /);
});

test("websocket: through the gateway and from inside", { skip }, async () => {
  await using mesh = await sample("websocket");
  const script = join(ROOT, "samples/websocket/client.ts");
  const outside = await run(process.execPath, [script, (await mesh.url()).replace("http:", "ws:"), "hello"]);
  assert.equal(outside.stdout, "chat says: hello\n");
  const inside = await mesh.workload("client").exec(["node", "client.ts", "ws://chat:8000/", "again"]);
  assert.equal(inside.stdout, "chat says: again\n", inside.stderr);
  const gateway = mesh.workload("istio-ingressgateway");
  await eventually(async () => /"GET \/ HTTP\/1\.1" 101/.test(await gateway.logs("proxy")));
});

test("jwt: users are known by their tokens", { skip }, async () => {
  await using mesh = await sample("jwt");
  const call = async (token?: string) => {
    const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const answer = await mesh.workload("sleep").fetch("http://api:8000/", { headers });
    return `${answer.status} ${(await answer.text()).trim()}`;
  };
  const tokenOf = async (user: string) => (await readFile(join(ROOT, `samples/jwt/${user}.jwt`), "utf8")).trim();
  assert.equal(await call(await tokenOf("anna")), "200 hello anna");
  assert.match(await call(await tokenOf("ben")), /^403 /);
  assert.match(await call(), /^403 /);
  assert.match(await call("x.y.z"), /^401 /);
  const [head, , signature] = (await tokenOf("anna")).split(".");
  const forged = Buffer.from(
    JSON.stringify({ iss: "https://issuer.example", sub: "eve", aud: "api", groups: ["readers"] }),
  );
  assert.match(await call(`${head}.${forged.toString("base64url")}.${signature}`), /^401 /);
});
