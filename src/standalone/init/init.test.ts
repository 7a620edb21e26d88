import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { meshUnavailable, mizzen, upMesh } from "../../../test/support/mesh-run.ts";
import { readMesh } from "../mesh/read-mesh.ts";
import { fromCompose, fromPackageJson, fromProcfile, mainFileOf, portIn } from "./detect.ts";
import { nameFrom, wordsOf } from "./found-service.ts";
import { type InitOptions, init } from "./init.ts";
import { portOf } from "./listening.ts";

test("wordsOf() keeps simple lines as words, and gives the others to the shell", () => {
  assert.deepEqual(wordsOf("node  server.js --port=80"), ["node", "server.js", "--port=80"]);
  assert.deepEqual(wordsOf("A=1 node x.js"), ["sh", "-c", "exec A=1 node x.js"]);
  assert.deepEqual(wordsOf("build && run 'it all'"), ["sh", "-c", "build && run 'it all'"]);
});

test("nameFrom() makes a name that workloads can have", () => {
  assert.deepEqual(
    ["My Shop!", "42", "", "--", "a".repeat(80)].map((text) => nameFrom(text, "web")),
    ["my-shop", "web-42", "web", "web", "a".repeat(50)],
  );
});

test("fromProcfile() has a workload for each line, with a port by the variable PORT", () => {
  const services = fromProcfile(
    "# jobs\nweb: node server.js\nrelease: migrate\nworker : sh -c 'work; work'\n\nnonsense\n",
  );
  assert.deepEqual(
    services.map(({ name, command, port, env }) => [name, command, port, env]),
    [
      ["web", ["node", "server.js"], 5000, { PORT: "5000" }],
      ["worker", ["sh", "-c", "sh -c 'work; work'"], 5100, { PORT: "5100" }],
    ],
  );
});

test("fromPackageJson() finds the start script or the main file, and the port in it", () => {
  const json = (fields: object) => JSON.stringify({ name: "@acme/Shop", ...fields });
  assert.deepEqual(mainFileOf(json({ scripts: { start: "node --watch src/main.ts" } })), "src/main.ts");
  const web = fromPackageJson(json({ scripts: { start: "node main.js" } }), "app.listen(process.env.PORT || 3000)");
  assert.deepEqual([web?.name, web?.command, web?.port], ["shop", ["node", "main.js"], 3000]);
  const next = fromPackageJson(json({ scripts: { start: "next start" } }), undefined);
  assert.deepEqual(next?.command, ["sh", "-c", 'PATH="$PWD/node_modules/.bin:$PATH"; next start']);
  assert.deepEqual(fromPackageJson(json({ main: "lib.js" }), undefined)?.command, ["node", "lib.js"]);
  for (const text of ["{}", "[]", "no JSON", "null"]) assert.equal(fromPackageJson(text, undefined), undefined, text);
});

test("portIn() reads a port from programs and Dockerfiles", () => {
  const texts = [
    "const port = 4000",
    "listen({ port: 81 })",
    "PORT = os.environ.get('PORT', 5001)",
    "FROM x\nEXPOSE 9000\n",
  ];
  assert.deepEqual(texts.map(portIn), [4000, 81, 5001, 9000]);
  assert.equal(portIn("listen(process.env.X) 99999"), undefined);
});

test("fromCompose() reads commands, ports, variables and dependencies; images have no command", () => {
  const services = fromCompose(`
services:
  web:
    build: {context: ./web}
    command: node server.js
    ports: ["8081:3000/tcp"]
    environment: [A=1, B=x=y, HOST]
    depends_on: {db: {condition: service_healthy}}
  api: {command: [python3, api.py], ports: [{target: 5000, published: 80}], environment: {N: 3, E: null}, depends_on: [web]}
  db: {image: "postgres:16", expose: ["5432"]}
`);
  assert.deepEqual(
    services.map(({ name, command, port, env, after, workingDir }) => ({
      name,
      command,
      port,
      env,
      after,
      workingDir,
    })),
    [
      {
        name: "web",
        command: ["node", "server.js"],
        port: 3000,
        env: { A: "1", B: "x=y" },
        after: ["db"],
        workingDir: "./web",
      },
      {
        name: "api",
        command: ["python3", "api.py"],
        port: 5000,
        env: { N: "3" },
        after: ["web"],
        workingDir: undefined,
      },
      { name: "db", command: undefined, port: 5432, env: {}, after: [], workingDir: undefined },
    ],
  );
  for (const text of ["", "[]", "services: 5", "{", "services: {web: }"]) {
    assert.ok(
      fromCompose(text).every(({ command }) => command === undefined),
      text,
    );
  }
});

test("portOf() is the lowest port that one of the sockets listens on", () => {
  const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 7 1
   1: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 8 1
   2: 0100007F:0050 00000000:0000 01 00000000:00000000 00:00000000 00000000     0        0 8 1
`;
  assert.equal(portOf(table, new Set(["7", "8", undefined])), 8080);
  assert.equal(portOf(table, new Set(["9"])), undefined);
});

interface Project extends AsyncDisposable {
  readonly path: string;
  init(options?: Partial<InitOptions>): ReturnType<typeof init>;
}

async function project(files: Readonly<Record<string, string>>): Promise<Project> {
  const path = join(await realpath(await mkdtemp(join(tmpdir(), "init-"))), "my-shop");
  await mkdir(path);
  for (const folder of [path, join(path, "..")]) await chmod(folder, 0o755);
  for (const [name, text] of Object.entries(files)) await writeFile(join(path, name), text);
  return {
    path,
    init: (options = {}) => init({ folder: path, name: undefined, port: undefined, command: undefined, ...options }),
    [Symbol.asyncDispose]: () => rm(join(path, ".."), { recursive: true }),
  };
}

/** What is written must be a mesh without a problem. */
async function meshOf(folder: string) {
  const file = join(folder, "mesh.yaml");
  const { mesh, problems } = readMesh({ text: await readFile(file, "utf8"), file });
  assert.deepEqual(problems, []);
  return mesh ?? assert.fail("no mesh");
}

test("init() in an empty folder writes a service to begin with", async () => {
  await using empty = await project({});
  const { files, services } = await empty.init();
  assert.deepEqual(files, ["mesh.yaml", "services.yaml", "gateway.yaml", "hello.js"]);
  assert.equal(services[0]?.name, "hello");
  const { name, members } = await meshOf(empty.path);
  assert.deepEqual([name, members.map((member) => member.name)], ["my-shop", ["istio-ingressgateway", "hello"]]);
});

test("init() takes what the person says, and makes the folder", async () => {
  await using place = await project({ Procfile: "web: other" });
  const folder = join(place.path, "deep/er");
  await place.init({ folder, name: "pay", port: 5432, command: "postgres -D data" });
  const { name, members } = await meshOf(folder);
  assert.deepEqual([name, members.map((member) => member.app?.command)], ["pay", [["postgres", "-D", "data"]]]);
  assert.match(await readFile(join(folder, "services.yaml"), "utf8"), /- name: tcp .*\n {4}port: 5432/);
  assert.ok(!(await readdir(folder)).includes("gateway.yaml"), "nothing to open");
});

test("init() reads a compose file; an image is left as a question in a comment", async () => {
  await using shop = await project({
    "docker-compose.yml":
      "services: {front: {command: node a.js, depends_on: [db, api]}, api: {command: node b.js}, db: {image: pg}}",
    "package.json": '{"scripts": {"start": "node other.js"}}',
  });
  await shop.init();
  const { members } = await meshOf(shop.path);
  assert.deepEqual(members.map(({ name, after }) => [name, after]).sort(), [
    ["api", []],
    ["front", ["api.default"]],
    ["istio-ingressgateway", []],
  ]);
  const text = await readFile(join(shop.path, "mesh.yaml"), "utf8");
  assert.match(text, /^ {2}# - name: db {3}# from compose file, image pg$/m);
});

test("init() finds a program of the folder that listens", async () => {
  await using place = await project({
    "web.cjs": 'require("node:http").createServer().listen(0, () => console.log("up"))',
  });
  const child = spawn(process.execPath, ["web.cjs"], { cwd: place.path, stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  try {
    const { services } = await place.init();
    assert.deepEqual([services[0]?.name, services[0]?.command], ["web", ["node", "web.cjs"]]);
    assert.ok((services[0]?.port ?? 0) > 1024);
  } finally {
    child.kill();
  }
});

test("init() overwrites nothing, and writes nothing when it cannot write all", async () => {
  await using place = await project({ "gateway.yaml": "mine" });
  await assert.rejects(place.init(), { code: "INIT_EXISTS", message: /gateway\.yaml": it is there/ });
  assert.deepEqual(await readdir(place.path), ["gateway.yaml"]);
});

test("init() refuses names and ports that no workload can have, and places that are none", async () => {
  await using place = await project({ "a-file": "" });
  await assert.rejects(place.init({ name: "My Shop" }), { code: "INIT_INVALID", message: /--name/ });
  await assert.rejects(place.init({ command: "x", port: 15001 }), { code: "INIT_INVALID", message: /15001/ });
  await assert.rejects(place.init({ folder: join(place.path, "a-file") }), { code: "INIT_FAILED" });
  for (const args of [
    ["--port", "x"],
    ["--port", "70000"],
    ["--nme", "x"],
  ]) {
    assert.equal((await mizzen(["init", place.path, ...args])).code, 2, args.join(" "));
  }
  assert.deepEqual(await readdir(place.path), ["a-file"]);
});

test("what init writes can be started", { skip: meshUnavailable() }, async () => {
  await using place = await project({ "app.py": PYTHON_APP });
  const { code, stdout, stderr } = await mizzen(["init", place.path, "--name", "shop"]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^wrote mesh\.yaml, services\.yaml, gateway\.yaml\nstart it with: mizzen up /);
  assert.equal(stderr, "shop, port 7070: python3 -u app.py (from app.py)\n");
  await using mesh = await upMesh(place.path);
  assert.equal(await (await fetch(await mesh.address())).text(), "hello from python");
});

const PYTHON_APP = `
from http.server import BaseHTTPRequestHandler, HTTPServer

port = 7070

class Hello(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from python")

HTTPServer(("0.0.0.0", port), Hello).serve_forever()
`;
