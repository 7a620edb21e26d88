import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { identify, isAlive } from "#lib/process-id.ts";
import { BASE_RULES } from "../fabric/service-rules.ts";
import { enterCommand, NOBODY, type Place, type ROOT } from "../plan/enter.ts";
import { etcFiles } from "../plan/files.ts";
import { assignAddresses, fabricNamespace, memberNamespace, namespaceFile } from "../plan/names.ts";
import { cableLines, fabricNetwork, memberNetwork } from "../plan/network.ts";
import { cleanMesh, registrationFile } from "../run/clean.ts";
import { runCommand } from "./command.ts";
import { keepPlace } from "./keepers.ts";
import { makeNamespace, namespacesOf, restoreRules, setUpNetwork } from "./namespaces.ts";
import { listMesh } from "./run-folders.ts";
import { makeFolders, writeAtomically } from "./write-files.ts";

const skip = process.getuid?.() === 0 ? false : "needs root";

interface Fabric extends AsyncDisposable {
  readonly id: string;
  readonly folder: string;
  /** Runs a command in member 0 or 1, as nobody unless told. */
  in(index: number, command: readonly string[], account?: typeof ROOT): Promise<string>;
}

const PODS = [
  { name: "web", namespace: "shop" },
  { name: "db", namespace: "shop" },
] as const;

function memberAddress(index: number): string {
  return [...assignAddresses(["0", "1"], new Map()).values()][index] ?? "";
}

function placeIn(folder: string, id: string, pod: (typeof PODS)[number]): Place {
  return {
    netns: memberNamespace(id, pod),
    hostname: pod.name,
    etc: join(folder, pod.name),
    namespaces: join(folder, `${pod.name}.namespaces`),
    state: join(folder, "state"),
    visible: [],
    owner: NOBODY.uid,
  };
}

/** A real fabric with two members. */
async function fabric(): Promise<Fabric> {
  const id = randomBytes(3).toString("hex");
  const folder = await mkdtemp(join(tmpdir(), "fabric-"));
  const cables = PODS.map((pod, i) => ({
    key: `${pod.name}.${pod.namespace}`,
    netns: memberNamespace(id, pod),
    address: memberAddress(i),
  }));
  await makeFolders([folder, join(folder, "state")].map((path) => ({ path, mode: 0o755, owner: 0 })));
  await listMesh(registrationFile(id), "{}");
  await Promise.all([fabricNamespace(id), ...cables.map(({ netns }) => netns)].map(makeNamespace));
  await setUpNetwork(fabricNetwork(fabricNamespace(id)));
  await setUpNetwork({ netns: fabricNamespace(id), sysctls: {}, ip: cables.flatMap(cableLines) });
  await Promise.all(cables.map(memberNetwork).map(setUpNetwork));
  const place = async (index: number) => {
    const pod = PODS[index] ?? PODS[0];
    const etc = join(folder, pod.name);
    await makeFolders([{ path: etc, mode: 0o755, owner: 0 }]);
    await Promise.all(etcFiles({ ...pod, folder: etc, address: memberAddress(index) }).map(writeAtomically));
    const made = placeIn(folder, id, pod);
    await keepPlace(made);
    return made;
  };
  return {
    id,
    folder,
    in: async (index, command, account = NOBODY) =>
      runCommand({ argv: enterCommand({ place: await place(index), account, cwd: "/", command }) }),
    async [Symbol.asyncDispose]() {
      await cleanMesh({ id, stateFolder: folder, graceMs: 0 });
      await rm(folder, { recursive: true, force: true });
    },
  };
}

test("a member has its own address, routes, name and files, and the machine keeps its own", { skip }, async () => {
  const resolvers = await readFile("/etc/resolv.conf", "utf8");
  const mounts = await readFile("/proc/self/mounts", "utf8");
  await using mesh = await fabric();
  assert.match(await mesh.in(0, ["ip", "-4", "-o", "addr"]), /eth0 +inet 10\.244\.0\.10\/32/);
  assert.match(await mesh.in(0, ["ip", "route"]), /^default via 10\.244\.0\.1 dev eth0/m);
  assert.equal((await mesh.in(0, ["uname", "-n"])).trim(), "web");
  assert.match(
    await mesh.in(0, ["cat", "/etc/resolv.conf"]),
    /^nameserver 10\.244\.0\.1\nsearch shop\.svc\.cluster\.local /,
  );
  assert.equal((await mesh.in(0, ["id", "-u"])).trim(), "65534");
  assert.equal(await readFile("/etc/resolv.conf", "utf8"), resolvers);
  const added = (await readFile("/proc/self/mounts", "utf8")).split("\n").filter((line) => !mounts.includes(line));
  assert.deepEqual(
    added.filter((line) => !line.includes("/run/netns")),
    [],
  );
});

test("members reach each other and any port may be listened on", { skip }, async () => {
  await using mesh = await fabric();
  const place = namespaceFile(memberNamespace(mesh.id, PODS[1]));
  const server = spawn("nsenter", [
    `--net=${place}`,
    "--",
    ...["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", process.execPath, "-e"],
    `require("node:http").createServer((_, answer) => answer.end("db")).listen(80, () => console.log("up"))`,
  ]);
  await new Promise((resolve) => server.stdout.once("data", resolve));
  assert.equal(await mesh.in(0, ["curl", "-sS", "-m", "5", "http://10.244.0.11/"]), "db");

  // A service address: translated in the fabric, also when a member reaches itself that way.
  await restoreRules(fabricNamespace(mesh.id), BASE_RULES);
  const rule = "-d 10.96.0.9/32 -p tcp -m tcp --dport 8000 -j DNAT --to-destination 10.244.0.11:80";
  const hairpin = "-s 10.244.0.11/32 -d 10.244.0.11/32 -j MASQUERADE";
  const rules = `*nat\n-A MIZZEN-SERVICES ${rule}\n-A MIZZEN-HAIRPIN ${hairpin}\nCOMMIT\n`;
  await restoreRules(fabricNamespace(mesh.id), rules);
  for (const caller of [0, 1]) {
    assert.equal(await mesh.in(caller, ["curl", "-sS", "-m", "5", "http://10.96.0.9:8000/"]), "db");
  }
});

test("calls to addresses that nobody has are refused, not only the first", { skip }, async () => {
  await using mesh = await fabric();
  const urls = Array.from({ length: 4 }, (_, i) => `http://192.0.2.${i + 1}/`);
  const call = `for url; do curl -s -m 5 -o /dev/null "$url"; echo $?; done`;
  // 7: could not connect; 28 would be a time-out.
  assert.deepEqual(
    (await mesh.in(0, ["sh", "-c", call, "sh", ...urls])).trim().split("\n"),
    urls.map(() => "7"),
  );
});

test("cleanMesh() ends every process in the mesh's namespaces, and leaves other meshes alone", { skip }, async () => {
  await using other = await fabric();
  const mesh = await fabric();
  const start = (netns: string, script: string) =>
    spawn("nsenter", [`--net=${namespaceFile(netns)}`, "sh", "-c", script]);
  const stubborn = start(memberNamespace(mesh.id, PODS[0]), 'trap "" TERM; echo up; while :; do sleep 0.01; done');
  const neighbour = start(memberNamespace(other.id, PODS[0]), "echo up; sleep 1000");
  await Promise.all([stubborn, neighbour].map(({ stdout }) => new Promise((resolve) => stdout.once("data", resolve))));
  const [ours, theirs] = await Promise.all([identify(stubborn.pid ?? 0), identify(neighbour.pid ?? 0)]);
  assert.ok(ours !== undefined && theirs !== undefined);

  await mesh[Symbol.asyncDispose]();
  assert.equal(await isAlive(ours), false);
  assert.deepEqual(await namespacesOf(mesh.id), []);
  assert.equal(await isAlive(theirs), true);
  assert.equal((await namespacesOf(other.id)).length, 3);
  neighbour.kill("SIGKILL");
});

test("cleanMesh() removes what an interrupted start left, and can be repeated", { skip }, async () => {
  const id = randomBytes(3).toString("hex");
  const folder = await mkdtemp(join(tmpdir(), "clean-"));
  await listMesh(registrationFile(id), "{}");
  await makeNamespace(fabricNamespace(id));
  // A file that was made but never became a namespace.
  await writeFile(namespaceFile(memberNamespace(id, PODS[0])), "");
  await writeFile(join(folder, "status.json"), "{");
  await writeFile(join(folder, ".mizzen"), "");
  for (let i = 0; i < 2; i++) await cleanMesh({ id, stateFolder: folder, graceMs: 0 });
  assert.deepEqual(await namespacesOf(id), []);
  await assert.rejects(stat(join(folder, "status.json")), { code: "ENOENT" });
  await rm(folder, { recursive: true });
});

test("cleanMesh() leaves a folder alone that is not marked as a mesh's", { skip }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "clean-"));
  await writeFile(join(folder, "status.json"), "mine");
  await cleanMesh({ id: "000000", stateFolder: folder, graceMs: 0 });
  assert.equal(await readFile(join(folder, "status.json"), "utf8"), "mine");
  await rm(folder, { recursive: true });
});

test("a namespace is removed although somebody else's `ip netns add` came after it", { skip }, async () => {
  const mesh = await fabric();
  const name = `other-${mesh.id}`;
  await runCommand({ argv: ["ip", "netns", "add", name] });
  await mesh[Symbol.asyncDispose]();
  assert.deepEqual(await namespacesOf(mesh.id), []);
  await runCommand({ argv: ["ip", "netns", "del", name] });
});

test("a process inside keeps no other namespace alive", { skip }, async () => {
  await using mesh = await fabric();
  const mounts = await mesh.in(0, ["cat", "/proc/self/mounts"]);
  assert.ok(!mounts.includes("/run/netns") && mounts.includes("/etc/resolv.conf"), mounts);
});

test("enterCommand() keeps the exit code, and lets a program read root's files only when told", { skip }, async () => {
  await using mesh = await fabric();
  await assert.rejects(mesh.in(0, ["sh", "-c", "echo no >&2; exit 7"]), (error: Error) => {
    assert.match(String(error.cause), /exit 7: no/);
    return true;
  });
  const secret = join(mesh.folder, "secret");
  await writeFile(secret, "hidden", { mode: 0o600 });
  await assert.rejects(mesh.in(0, ["cat", secret]));
  const place = placeIn(mesh.folder, mesh.id, PODS[0]);
  const capability = "dac_read_search";
  const argv = enterCommand({ place, account: NOBODY, capability, cwd: "/", command: ["cat", secret] });
  assert.equal(await runCommand({ argv }), "hidden");
});

test("the gateway and every address keep their hardware address, whoever comes and goes", { skip }, async () => {
  await using mesh = await fabric();
  const gateway = async () => {
    const argv = ["nsenter", `--net=${namespaceFile(fabricNamespace(mesh.id))}`, "ip", "link", "show", "mizzen0"];
    return /link\/ether (\S+)/.exec(await runCommand({ argv }))?.[1];
  };
  assert.equal(await gateway(), "02:6d:0a:f4:00:01");
  assert.match(await mesh.in(0, ["ip", "link", "show", "eth0"]), /link\/ether 02:6d:0a:f4:00:0a/);
  // A bridge that has none of its own takes the lowest of its cables'.
  const ip = ["link add low0 address 00:00:00:00:00:01 type veth peer name low1", "link set low0 master mizzen0 up"];
  await setUpNetwork({ netns: fabricNamespace(mesh.id), sysctls: {}, ip });
  assert.equal(await gateway(), "02:6d:0a:f4:00:01");
});
