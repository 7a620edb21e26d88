import assert from "node:assert/strict";
import { appendFile, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { setImmediate } from "node:timers/promises";
import { NOBODY } from "../plan/enter.ts";
import type { MemberStatus, MeshStatus } from "../status/status.ts";
import { findMember, membersWith } from "./find-mesh.ts";
import { logFile, printLog } from "./logs.ts";

function member(name: string, changes: Partial<MemberStatus> = {}): MemberStatus {
  return {
    name,
    workload: name,
    namespace: "default",
    labels: {},
    kind: "workload",
    address: "10.244.0.10",
    ports: [],
    job: false,
    state: "running",
    ready: true,
    reason: "",
    app: undefined,
    proxy: undefined,
    logs: { app: `/logs/${name}`, proxy: `/logs/${name}.proxy` },
    shell: {
      place: { netns: name, hostname: name, etc: "", namespaces: "", state: "", visible: [], owner: 0 },
      account: NOBODY,
      env: {},
      cwd: "/",
    },
    ...changes,
  };
}

const MESH: MeshStatus = {
  id: "abc123",
  name: "shop",
  file: "/srv/shop/mesh.yaml",
  stateFolder: "/state",
  runner: { pid: 1, startTime: "1", bootId: "" },
  phase: "ready",
  startedAt: "",
  egress: false,
  notes: [],
  published: [],
  members: [
    member("web-1", { workload: "web" }),
    member("web-2", { workload: "web" }),
    member("db"),
    member("db", { namespace: "prod" }),
  ],
};

test("findMember() finds by name, by name and namespace, and the first replica of a workload", () => {
  assert.equal(findMember(MESH, "web-2").name, "web-2");
  assert.equal(findMember(MESH, "web").name, "web-1");
  assert.equal(findMember(MESH, "web.default").name, "web-1");
  assert.equal(findMember(MESH, "db.prod").namespace, "prod");
});

test("membersWith() finds members by their labels, in one namespace or in all", () => {
  const labelled = ["default", "prod"].map((namespace) => member("web", { namespace, labels: { app: "web" } }));
  const mesh = { ...MESH, members: [...MESH.members, ...labelled] };
  const found = (namespace?: string) =>
    membersWith(mesh, { matchLabels: { app: "web" } }, namespace).map((one) => one.namespace);
  assert.deepEqual(found(), ["default", "prod"]);
  assert.deepEqual(found("prod"), ["prod"]);
  assert.deepEqual(found("other"), []);
});

test("findMember() names the choices when a name is unknown or means several", () => {
  assert.throws(() => findMember(MESH, "cache"), {
    code: "MEMBER_UNKNOWN",
    message: 'Mesh "shop" has no workload "cache": choose one of web-1, web-2, db.default, db.prod',
  });
  assert.throws(() => findMember(MESH, "db"), {
    code: "MEMBER_AMBIGUOUS",
    message: /choose one of db.default, db.prod/,
  });
});

test("logFile() is the app's, or the proxy's; a gateway has only a proxy", () => {
  assert.equal(logFile(member("web"), false), "/logs/web");
  assert.equal(logFile(member("web"), true), "/logs/web.proxy");
  assert.equal(logFile(member("gw", { kind: "gateway" }), false), "/logs/gw.proxy");
  const plain = member("web", { logs: { app: "/logs/web", proxy: undefined } });
  assert.throws(() => logFile(plain, true), { code: "NO_PROXY" });
});

test("printLog() prints a log, follows what is added, and begins anew when the file does", async () => {
  const folder = await mkdtemp(join(tmpdir(), "logs-"));
  const file = join(folder, "log");
  try {
    await writeFile(file, "one\n");
    let seen = "";
    const write = (chunk: Buffer) => {
      seen += chunk.toString();
    };
    const never = new AbortController().signal;
    await printLog({ file, follow: false, write }, never);
    assert.equal(seen, "one\n");

    seen = "";
    const stop = new AbortController();
    const following = printLog({ file, follow: true, write }, stop.signal);
    const until = async (text: string) => {
      while (seen !== text) await setImmediate();
    };
    await until("one\n");
    await appendFile(file, "two\n");
    await until("one\ntwo\n");
    await truncate(file);
    await appendFile(file, "3\n");
    await until("one\ntwo\n3\n");
    stop.abort();
    await following;
  } finally {
    await rm(folder, { recursive: true });
  }
});

test("printLog() says that a process which never ran has no log", async () => {
  const never = new AbortController().signal;
  await assert.rejects(printLog({ file: "/nowhere/log", follow: false, write: () => undefined }, never), {
    code: "LOG_MISSING",
  });
});
