import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, stat } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { SILENT } from "#lib/log/log.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { statePaths } from "../plan/state-paths.ts";
import { askMesh, connectToMesh } from "./ask.ts";
import type { ControlRequest } from "./protocol.ts";
import { type ControlSession, serveControl } from "./serve-control.ts";

type Handle = (request: ControlRequest, session: ControlSession) => Promise<unknown>;

/** A state folder in which a handler listens. */
async function listening(handle: Handle, folder = "state"): Promise<AsyncDisposable & { readonly state: string }> {
  const root = await mkdtemp(join(tmpdir(), "control-"));
  const state = join(root, folder);
  await mkdir(state, { recursive: true });
  const close = await serveControl({ path: statePaths(state).control, handle, log: SILENT });
  return {
    state,
    async [Symbol.asyncDispose]() {
      close();
      await rm(root, { recursive: true });
    },
  };
}

const STOP = { kind: "stop", workload: "web" } as const;

test("askMesh() gets progress and an answer, over a socket that is root's alone", async () => {
  await using mesh = await listening(async (request, { progress }) => {
    progress(`heard ${request.kind}`);
    return { changes: ["web stopped"] };
  });
  const lines: string[] = [];
  const answer = await askMesh(mesh.state, STOP, { onProgress: (line) => lines.push(line) });
  assert.deepEqual([lines, answer.changes], [["heard stop"], ["web stopped"]]);
  assert.equal((await stat(statePaths(mesh.state).control)).mode & 0o777, 0o600);
});

test("askMesh() works in folders that are too deep for the kernel's socket names", async () => {
  await using mesh = await listening(async () => "deep", "x/".repeat(80));
  assert.equal(await askMesh(mesh.state, { kind: "status" }), "deep");
});

test("askMesh() throws what the mesh refuses, with its code", async () => {
  await using mesh = await listening(() => Promise.reject(new MeshError("MEMBER_UNKNOWN", "no such workload")));
  await assert.rejects(askMesh(mesh.state, STOP), { code: "MEMBER_UNKNOWN", message: "no such workload" });
});

test("askMesh() says that nobody listens, and that the mesh ended before it answered", async () => {
  await assert.rejects(askMesh("/nowhere", STOP), { code: "MESH_NOT_LISTENING" });
  const asked = Promise.withResolvers<void>();
  const mesh = await listening(() => {
    asked.resolve();
    return new Promise(() => undefined);
  });
  const answer = askMesh(mesh.state, STOP);
  await asked.promise;
  await Promise.all([assert.rejects(answer, { code: "RUNNER_LOST" }), mesh[Symbol.asyncDispose]()]);
});

test("a handler hears that whoever asked is gone", async () => {
  const gone = Promise.withResolvers<void>();
  await using mesh = await listening(async (_request, session) => {
    session.gone.addEventListener("abort", () => gone.resolve());
    return "joined";
  });
  const connection = await connectToMesh(mesh.state);
  assert.equal(await connection.ask({ kind: "status" }), "joined");
  connection[Symbol.dispose]();
  await gone.promise;
});

test("what is no request is refused, and what is no JSON ends the connection", async () => {
  await using mesh = await listening(async () => "never");
  const say = async (text: string) => {
    const socket = connect(statePaths(mesh.state).control);
    socket.write(text);
    socket.end();
    let heard = "";
    for await (const chunk of socket) heard += chunk;
    return heard;
  };
  assert.match(await say("42\n"), /"code":"CONTROL_UNKNOWN"/);
  assert.equal(await say("{nonsense\n"), "");
});
