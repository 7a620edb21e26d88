import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { assertSettled } from "../../support/envoy-settled.ts";
import { type Finished, meshUnavailable, mizzen, RunningMesh } from "../../support/mesh-run.ts";

const ROOT = join(import.meta.dirname, "../../..");
const PROXIES = [
  "productpage-v1",
  "details-v1",
  "ratings-v1",
  "reviews-v1",
  "reviews-v2",
  "reviews-v3",
  "istio-ingressgateway",
];

describe("Bookinfo", { skip: meshUnavailable() }, () => {
  const name = `bookinfo-${randomBytes(3).toString("hex")}`;
  let mesh: RunningMesh;
  let address: string;
  /** Commands that were printed, by what they are for. */
  let lessons: ReadonlyMap<string, string>;

  before(async () => {
    const state = await mkdtemp(join(tmpdir(), "mizzen-state-"));
    mesh = new RunningMesh(name, state);
    const started = await mizzen(["up", "samples/bookinfo", "-d", "--free-ports", "--name", name, "--state", state]);
    assert.equal(started.code, 0, started.stderr);
    const [, printed = ""] = started.stdout.split("Try, in another terminal:\n");
    lessons = new Map(
      [...printed.matchAll(/^ {2}(\S.*?) {2,}(\S.*)$/gm)].map(([, what = "", command = ""]) => [what, command]),
    );
    address = await mesh.address();
  });

  after(async () => {
    assert.equal((await mesh.down()).code, 0);
    await rm(mesh.stateFolder, { recursive: true, force: true });
  });

  /** Pages as a number of visitors see them. */
  async function pages(views: number, user = ""): Promise<readonly string[]> {
    const url = `${address}/productpage${user === "" ? "" : `?u=${user}`}`;
    return Promise.all(Array.from({ length: views }, async () => (await fetch(url)).text()));
  }

  /** The versions of reviews that a number of page views show. */
  async function reviews(views: number, user = ""): Promise<Set<string>> {
    return new Set((await pages(views, user)).map((html) => /reviews-(v\d)/.exec(html)?.[1] ?? "none"));
  }

  async function apply(file: string): Promise<void> {
    const text = await readFile(join(ROOT, "samples/bookinfo/networking", file), "utf8");
    await (await mesh.mesh()).apply(text);
  }

  /** Runs a lesson as it was printed, in a shell as a person has it; the variable says which mesh when several are up. */
  function lesson(what: string): Finished {
    const command = lessons.get(what) ?? assert.fail(`"${what}" is none of ${[...lessons.keys()].join(", ")}`);
    const env = { ...process.env, MIZZEN_MESH: name };
    const { status, stdout, stderr } = spawnSync("sh", ["-c", command], { cwd: ROOT, env, encoding: "utf8" });
    return { code: status ?? 1, stdout, stderr };
  }

  async function takeBack(file: string): Promise<void> {
    const path = `samples/bookinfo/networking/${file}`;
    const { code, stderr } = await mizzen(["delete", path], { MIZZEN_MESH: name });
    assert.equal(code, 0, stderr);
  }

  test("the page is served through the gateway with details and reviews", async () => {
    const answer = await fetch(`${address}/productpage`);
    const html = await answer.text();
    assert.equal(answer.status, 200);
    for (const part of [/The Comedy of Errors/, /ISBN/, /<code>productpage-v1<\/code>/]) assert.match(html, part);
    assert.equal((await fetch(`${address}/nowhere`)).status, 404);
    assert.deepEqual([...(await reviews(30))].sort(), ["v1", "v2", "v3"]);
  });

  test("what to try is said in five lines", () => {
    assert.equal(lessons.size, 5, [...lessons.keys()].join());
  });

  test("lesson: split traffic", async () => {
    assert.equal(lesson("split traffic").stdout, "VirtualService/default/reviews created\n");
    const seen = Map.groupBy(await pages(120), (html) => /reviews-(v\d)/.exec(html)?.[1] ?? "none");
    const [v1 = 0, v2 = 0] = [seen.get("v1")?.length, seen.get("v2")?.length];
    assert.equal(v1 + v2, 120, [...seen.keys()].join());
    assert.ok(v1 > 70 && v2 > 5, `${v1} and ${v2}`);
    await takeBack("virtual-service-reviews-80-20.yaml");
  });

  test("lesson: inject a fault", async () => {
    assert.equal(lesson("inject a fault").code, 0);
    for (const html of await pages(20)) {
      const rated = /reviews-v[23]/.test(html);
      assert.equal(html.includes("Ratings are currently unavailable"), rated);
    }
    await takeBack("virtual-service-ratings-abort.yaml");
  });

  test("lesson: refuse plain text", async () => {
    const { code, stderr } = lesson("refuse plain text");
    assert.deepEqual([code, /Connection reset by peer/.test(stderr)], [56, true], stderr);
    assert.ok(
      (await pages(3)).every((html) => html.includes("ISBN")),
      "the mesh itself goes on",
    );
    await takeBack("peer-authentication-strict.yaml");
    const open = await mizzen(["run", "--no-inject", "--", "curl", "-sS", "http://details:9080/details/0"], {
      MIZZEN_MESH: name,
    });
    assert.match(open.stdout, /ISBN/);
  });

  test("lesson: break a circuit", async () => {
    const { stdout, stderr } = lesson("break a circuit");
    const [, answered, refused] = /^200: (\d+) of 40\n503: (\d+) of 40$/m.exec(stdout) ?? assert.fail(stdout + stderr);
    assert.equal(Number(answered) + Number(refused), 40);
    await takeBack("destination-rule-details-circuit.yaml");
  });

  test("lesson: look into a proxy", () => {
    const { configs } = JSON.parse(lesson("look into a proxy").stdout);
    const names = configs.map(({ cluster }: { readonly cluster: { readonly name: string } }) => cluster.name);
    assert.ok(names.includes("outbound|9080|v2|reviews.default.svc.cluster.local"), names.join());
  });

  test("all traffic goes to v1, and jason's to v2, as the sample routes say", async () => {
    await apply("virtual-service-all-v1.yaml");
    assert.deepEqual(await reviews(20), new Set(["v1"]));
    await apply("virtual-service-reviews-test-v2.yaml");
    assert.deepEqual(await reviews(10, "jason"), new Set(["v2"]));
    assert.deepEqual(await reviews(10), new Set(["v1"]));
  });

  test("no proxy rejected anything, and nothing warms", async () => {
    await assertSettled(mesh, PROXIES);
  });
});
