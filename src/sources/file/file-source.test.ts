import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { createLogger } from "#lib/log/log.ts";
import { DEFAULT_FEATURES } from "#model/features.ts";
import {
  problemsOf,
  type SourceUnderTest,
  servicesOf,
  serviceYaml,
  testTextSource,
  until,
} from "../source-contract.ts";
import { type FileSourceOptions, fileSource } from "./file-source.ts";

interface OpenedFiles extends SourceUnderTest {
  write(files: Readonly<Record<string, string | undefined>>): void;
  /** A folder of the test's own; the configuration is in `config` below it. */
  readonly folder: string;
  readonly config: string;
  readonly log: string[];
  path(name: string): string;
  stop(): Promise<void>;
}

/** A running source over a folder with the given files. */
async function openFiles(
  files: Readonly<Record<string, string>>,
  options: (folder: string) => Partial<FileSourceOptions> = () => ({}),
): Promise<OpenedFiles> {
  const folder = mkdtempSync(join(tmpdir(), "file-source-"));
  const config = join(folder, "config");
  const path = (name: string) => join(config, name);
  const write: OpenedFiles["write"] = (changes) => {
    for (const [name, text] of Object.entries(changes)) {
      if (text === undefined) rmSync(path(name));
      else writeFileSync(path(name), text);
    }
  };
  mkdirSync(config);
  write(files);
  const log: string[] = [];
  const source = fileSource({
    folders: [config],
    features: DEFAULT_FEATURES,
    log: createLogger({ write: (line) => log.push(line.split("\t").slice(1).join(" ").trimEnd()) }),
    ...options(folder),
  });
  const aborting = new AbortController();
  const first = new Promise<void>((resolve) => {
    source.subscribe(() => resolve());
  });
  const running = source.run(aborting.signal);
  const stop = () => {
    aborting.abort();
    return running;
  };
  await Promise.race([first, running]);
  const dispose = async () => {
    await stop();
    rmSync(folder, { recursive: true, force: true });
  };
  return { source, write, folder, config, log, path, stop, [Symbol.asyncDispose]: dispose };
}

testTextSource("file source", (files) => openFiles(files));

function fileTest(name: string, run: () => Promise<void>): void {
  test(`file source: ${name}`, { timeout: 120_000 }, run);
}

/** Collects, from now on, the services of every snapshot. */
function watchServices(opened: OpenedFiles): string[] {
  const seen: string[] = [];
  opened.source.subscribe(() => seen.push(servicesOf(opened).join()));
  return seen;
}

fileTest("files of other names and hidden ones are left alone", async () => {
  await using opened = await openFiles({
    "a.yaml": serviceYaml("a"),
    ".b.yaml": serviceYaml("b"),
    "c.txt": "[",
    "d.yaml~": "[",
  });
  assert.deepEqual(servicesOf(opened), ["a:80"]);
  assert.deepEqual(opened.source.problems(), []);
  opened.write({ ".e.yaml": serviceYaml("e"), "f.swp": "[", "g.yaml": serviceYaml("g") });
  await until(() => servicesOf(opened).includes("g:80"));
  assert.deepEqual(servicesOf(opened), ["a:80", "g:80"]);
});

fileTest("a file replaced by renaming is read, and writes after that as well", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") });
  for (const port of [81, 82]) {
    writeFileSync(opened.path(".a.yaml.tmp"), serviceYaml("a", port));
    renameSync(opened.path(".a.yaml.tmp"), opened.path("a.yaml"));
    await until(() => servicesOf(opened).join() === `a:${port}`);
  }
  opened.write({ "a.yaml": serviceYaml("a", 83) });
  await until(() => servicesOf(opened).join() === "a:83");
});

fileTest("a file that is emptied before it is filled loses nothing in between", async () => {
  await using opened = await openFiles({ "a.yaml": `${serviceYaml("a")}---\n${serviceYaml("b")}` });
  const seen = watchServices(opened);
  const file = openSync(opened.path("a.yaml"), "w");
  await wait(8);
  writeSync(file, serviceYaml("a", 81));
  writeSync(file, `---\n${serviceYaml("b", 81)}`);
  closeSync(file);
  await until(() => servicesOf(opened).join() === "a:81,b:81");
  assert.ok(
    seen.every((services) => services.includes("a:") && services.includes("b:")),
    seen.join(" then "),
  );
  assert.deepEqual(
    opened.log.filter((line) => line.startsWith("error")),
    [],
  );
});

fileTest("a file that is removed before it is written anew loses nothing in between", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") });
  const seen = watchServices(opened);
  rmSync(opened.path("a.yaml"));
  await wait(8);
  opened.write({ "a.yaml": serviceYaml("a", 81) });
  await until(() => servicesOf(opened).join() === "a:81");
  assert.deepEqual(seen, ["a:81"]);
});

fileTest("a file that stays empty gives up its objects", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") });
  opened.write({ "a.yaml": "" });
  await until(() => servicesOf(opened).length === 0);
});

fileTest("folders come, are filled, exchanged and go", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") });
  mkdirSync(opened.path("deep/deeper"), { recursive: true });
  opened.write({ "deep/deeper/b.yaml": serviceYaml("b") });
  await until(() => servicesOf(opened).join() === "a:80,b:80");
  opened.write({ "deep/deeper/b.yaml": serviceYaml("b", 81) });
  await until(() => servicesOf(opened).includes("b:81"));
  mkdirSync(opened.path("other"));
  opened.write({ "other/b.yaml": serviceYaml("c") });
  await until(() => servicesOf(opened).includes("c:80"));
  renameSync(opened.path("deep"), join(opened.folder, "away"));
  renameSync(opened.path("other"), opened.path("deep"));
  await until(() => servicesOf(opened).join() === "a:80,c:80");
  opened.write({ "deep/b.yaml": serviceYaml("c", 82) });
  await until(() => servicesOf(opened).includes("c:82"));
  rmSync(opened.path("deep"), { recursive: true });
  await until(() => servicesOf(opened).join() === "a:80");
});

fileTest("a configured folder that is removed leaves its objects, and one made anew is read", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") });
  const seen = watchServices(opened);
  rmSync(opened.config, { recursive: true });
  await until(() => opened.source.problems().length > 0);
  assert.match(problemsOf(opened)[0] ?? "", /^config:1: does not exist$/);
  assert.deepEqual(servicesOf(opened), ["a:80"]);
  mkdirSync(opened.config);
  opened.write({ "b.yaml": serviceYaml("b") });
  await until(() => servicesOf(opened).join() === "b:80");
  opened.write({ "b.yaml": serviceYaml("b", 81) });
  await until(() => servicesOf(opened).join() === "b:81");
  assert.ok(!seen.includes(""), seen.join(" then "));
  assert.deepEqual(opened.source.problems(), []);
});

fileTest("a folder that is not there yet is waited for", async () => {
  await using opened = await openFiles({}, (folder) => ({ folders: [join(folder, "later/still/later")] }));
  assert.equal(opened.source.problems().length, 1);
  mkdirSync(join(opened.folder, "later/still"), { recursive: true });
  mkdirSync(join(opened.folder, "later/still/later"));
  writeFileSync(join(opened.folder, "later/still/later/a.yaml"), serviceYaml("a"));
  await until(() => servicesOf(opened).join() === "a:80");
  assert.deepEqual(opened.source.problems(), []);
});

fileTest("several folders and single files make one configuration", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") }, (folder) => {
    mkdirSync(join(folder, "more"));
    writeFileSync(join(folder, "more/b.yaml"), serviceYaml("b"));
    writeFileSync(join(folder, "single"), serviceYaml("c"));
    writeFileSync(join(folder, "unrelated.yaml"), serviceYaml("d"));
    return { folders: [join(folder, "config"), join(folder, "more"), join(folder, "single")] };
  });
  assert.deepEqual(servicesOf(opened), ["a:80", "b:80", "c:80"]);
  writeFileSync(join(opened.folder, "single"), serviceYaml("c", 81));
  await until(() => servicesOf(opened).includes("c:81"));
});

fileTest("a mounted ConfigMap, which exchanges a link, is followed", async () => {
  await using opened = await openFiles({});
  const mount = (version: string, port: number) => {
    mkdirSync(opened.path(`..${version}`));
    opened.write({ [`..${version}/a.yaml`]: serviceYaml("a", port) });
    symlinkSync(`..${version}`, opened.path("..data.tmp"));
    renameSync(opened.path("..data.tmp"), opened.path("..data"));
  };
  mount("v1", 81);
  symlinkSync("..data/a.yaml", opened.path("a.yaml"));
  await until(() => servicesOf(opened).join() === "a:81");
  mount("v2", 82);
  await until(() => servicesOf(opened).join() === "a:82");
});

fileTest("links that go in a circle are reported and followed only once", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") }, (folder) => {
    symlinkSync("b.yaml", join(folder, "config/b.yaml"));
    symlinkSync(".", join(folder, "config/self"));
    symlinkSync("nowhere.yaml", join(folder, "config/c.yaml"));
    return {};
  });
  assert.deepEqual(servicesOf(opened), ["a:80"]);
  assert.deepEqual(problemsOf(opened), ["b.yaml:1: cannot be read: its links go in a circle"]);
});

fileTest("a file that turns unreadable keeps its objects", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a"), "b.yaml": serviceYaml("b") });
  writeFileSync(opened.path("a.yaml"), Buffer.from([0xff, 0xfe, 0x00]));
  truncateSync(opened.path("b.yaml"), 65 * 1024 * 1024);
  await until(() => opened.source.problems().length === 2);
  assert.deepEqual(problemsOf(opened).sort(), ["a.yaml:1: is not a text file", "b.yaml:1: is larger than 64 MiB"]);
  assert.deepEqual(servicesOf(opened), ["a:80", "b:80"]);
});

fileTest("a problem is logged once, and again after it was gone", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") });
  const errors = () => opened.log.filter((line) => line.startsWith("error"));
  opened.write({ "a.yaml": serviceYaml("a", 0) });
  await until(() => errors().length === 1);
  assert.match(
    errors()[0] ?? "",
    /a\.yaml:8: Service\/default\/a: spec\.ports\[0\]\.port must be a port from 1 to 65535, not 0$/,
  );
  opened.write({ "b.yaml": serviceYaml("b") });
  await until(() => servicesOf(opened).includes("b:80"));
  assert.equal(errors().length, 1);
  opened.write({ "a.yaml": serviceYaml("a", 81) });
  await until(() => servicesOf(opened).includes("a:81"));
  opened.write({ "a.yaml": serviceYaml("a", 0) });
  await until(() => errors().length === 2);
});

fileTest("a large file is read in slices, and a change of it costs the changed document", async () => {
  const many = Array.from({ length: 2000 }, (_, i) => serviceYaml(`s${i}`)).join("---\n");
  await using opened = await openFiles({});
  // In processor time: that others have their turn is no stop of ours.
  const spentMs = () => process.threadCpuUsage().user / 1000 + process.threadCpuUsage().system / 1000;
  const start = spentMs();
  const ticks = [start];
  const timer = setInterval(() => ticks.push(spentMs()), 1);
  opened.write({ "a.yaml": many });
  await until(() => servicesOf(opened).length === 2000);
  clearInterval(timer);
  const longestStop = Math.max(...ticks.map((tick, i) => tick - (ticks[i - 1] ?? start)));
  assert.ok(longestStop < (spentMs() - start) * 0.7, `stopped for ${longestStop} ms`);
  const before = opened.source.current();
  appendFileSync(opened.path("a.yaml"), `---\n${serviceYaml("extra")}`);
  await until(() => servicesOf(opened).length === 2001);
  const kept = new Set(before.services);
  assert.equal(opened.source.current().services.filter((service) => !kept.has(service)).length, 1);
});

fileTest("the mesh config is read, watched, and kept when it breaks or goes", async () => {
  const meshPath = (folder: string) => join(folder, "mesh", "mesh.yaml");
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") }, (folder) => {
    mkdirSync(join(folder, "mesh"));
    writeFileSync(meshPath(folder), "accessLogFile: /one\n");
    return { meshConfigFile: meshPath(folder) };
  });
  const { source } = opened;
  const logFile = () => source.current().mesh.accessLogFile;
  assert.equal(logFile(), "/one");
  writeFileSync(meshPath(opened.folder), "accessLogFile: /two\n");
  await until(() => logFile() === "/two");
  writeFileSync(meshPath(opened.folder), "# here\naccessLogFile: [/three]\n");
  await until(() => source.problems().length > 0);
  assert.deepEqual(problemsOf(opened), ["mesh.yaml:2: MeshConfig: accessLogFile must be text, not a list"]);
  assert.equal(logFile(), "/two");
  rmSync(meshPath(opened.folder));
  await until(() => problemsOf(opened)[0]?.includes("does not exist: what it said last holds") === true);
  assert.equal(logFile(), "/two");
  rmSync(join(opened.folder, "mesh"), { recursive: true });
  mkdirSync(join(opened.folder, "mesh"));
  writeFileSync(meshPath(opened.folder), "accessLogFile: /four\n");
  await until(() => logFile() === "/four");
  assert.deepEqual(source.problems(), []);
});

fileTest("without a mesh config file Istio's defaults hold", async () => {
  await using opened = await openFiles({}, (folder) => ({ meshConfigFile: join(folder, "mesh.yaml") }));
  assert.deepEqual(problemsOf(opened), ["mesh.yaml:1: MeshConfig: does not exist: Istio's defaults hold"]);
  assert.equal(opened.source.current().mesh.rootNamespace, "istio-system");
  writeFileSync(join(opened.folder, "mesh.yaml"), "rootNamespace: mesh\n");
  await until(() => opened.source.current().mesh.rootNamespace === "mesh");
});

fileTest("it stops when told to, and calls no one afterwards", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") });
  await opened.stop();
  const seen = watchServices(opened);
  opened.write({ "a.yaml": serviceYaml("a", 81) });
  await wait(50);
  assert.deepEqual(seen, []);
});

fileTest("a named pipe is reported and keeps nothing waiting", async () => {
  await using opened = await openFiles({ "a.yaml": serviceYaml("a") });
  execFileSync("mkfifo", [opened.path("pipe.yaml")]);
  await until(() => opened.source.problems().length > 0);
  assert.deepEqual(problemsOf(opened), ["pipe.yaml:1: is not a regular file"]);
  opened.write({ "b.yaml": serviceYaml("b") });
  await until(() => servicesOf(opened).includes("b:80"));
});

fileTest("a folder that was removed and made again at once is followed", async () => {
  await using opened = await openFiles({});
  for (const name of ["a", "b", "c"]) {
    rmSync(opened.path("sub"), { recursive: true, force: true });
    mkdirSync(opened.path("sub"));
    await until(() => servicesOf(opened).length === 0);
    opened.write({ [`sub/${name}.yaml`]: serviceYaml(name) });
    await until(() => servicesOf(opened).join() === `${name}:80`);
  }
});

const NETWORKS = "networks: {n1: {gateways: [{address: 1.2.3.4, port: 15443}]}}\n";

test("file source: the networks of the mesh are followed, and stay as they were while they are broken", async () => {
  const file = (folder: string) => join(folder, "networks.yaml");
  await using opened = await openFiles({}, (folder) => ({ networksFile: file(folder) }));
  const gateways = () => opened.source.current().networkGateways.map(({ address }) => address);
  assert.deepEqual([gateways(), opened.source.problems()], [[], []]);
  writeFileSync(file(opened.folder), NETWORKS);
  await until(() => gateways().join() === "1.2.3.4");
  writeFileSync(file(opened.folder), NETWORKS.replace("15443", "99999"));
  await until(() => opened.source.problems().length > 0);
  assert.deepEqual(gateways(), ["1.2.3.4"]);
  assert.match(
    problemsOf(opened)[0] ?? "",
    /networks\.yaml:1: MeshNetworks: networks\.n1\.gateways\[0\]\.port must be/,
  );
  writeFileSync(file(opened.folder), NETWORKS.replace("1.2.3.4", "1.2.3.5"));
  await until(() => gateways().join() === "1.2.3.5");
  assert.deepEqual(opened.source.problems(), []);
});
