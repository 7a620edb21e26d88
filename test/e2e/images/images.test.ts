/** The files of our images, run as Kubernetes runs them: as uid 1337 without capabilities, on a root that cannot be written. */
import assert from "node:assert/strict";
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { promisify } from "node:util";
import { SignJWT } from "jose";
import { agentEnvironment, agentPorts, agentReady, writePodFiles } from "../../support/agent-process.ts";
import { eventually } from "../../support/fake-control-plane.ts";
import { freePorts } from "../../support/free-ports.ts";
import { nodeFlags, scriptEnvironment, scriptFlags } from "../../support/program-script.ts";

const ROOT = join(import.meta.dirname, "../../..");
const run = promisify(execFile);
/** In a folder that may be written. */
const CA = "/var/run/secrets/istio-dns/ca";
const isBuilt = existsSync(join(ROOT, "dist/launcher.cjs")) && existsSync(join(ROOT, ".cache/envoy"));
const skip = process.getuid?.() !== 0 ? "needs root" : isBuilt ? false : "needs `make build`";

/** What an image sets for whatever runs in it. */
function environmentOf(image: string): Record<string, string> {
  const lines = readFileSync(join(ROOT, `images/${image}.Dockerfile`), "utf8").matchAll(/^ENV (.*)$/gm);
  const settings = [...lines].flatMap(([, line = ""]) => [...line.matchAll(/(\w+)=(?:"([^"]*)"|(\S+))/g)]);
  return Object.fromEntries(settings.map(([, name = "", quoted, plain = ""]) => [name, quoted ?? plain]));
}

/** Folders that the chart and injection mount. */
const WRITABLE = [
  "etc/istio/proxy",
  "var/lib/istio/data",
  "var/run/secrets/istio-dns",
  "var/run/secrets/credential-uds",
  "var/run/secrets/workload-spiffe-uds",
  "var/run/secrets/workload-spiffe-credentials",
];

/** `sh -c THIS sh TREE PROGRAM ARGS...`, in a mount namespace of its own. */
const ENTER = [
  "set -e; tree=$1; shift",
  'mount --bind "$tree" "$tree" && mount -o remount,bind,ro "$tree"',
  ...WRITABLE.map((folder) => `mount -t tmpfs -o mode=1777 none "$tree/${folder}"`),
  'mount -t proc none "$tree/proc" && mount --bind /dev "$tree/dev"',
  'exec chroot --userspec=1337:1337 --groups=1337 "$tree" "$@"',
].join("\n");

describe("images", { skip, timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "mizzen-images-"));
  const treeOf = (image: string) => join(folder, image);
  before(async () => {
    for (const image of ["proxyv2", "pilot"]) {
      await run("sh", [join(ROOT, "images/assemble.sh"), image, treeOf(image)]);
    }
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  const commandOf = (image: string, args: readonly string[]) =>
    ["unshare", "--mount", "--propagation=private", "sh", "-c", ENTER, "sh", treeOf(image), ...args] as const;

  async function output(image: string, ...args: string[]): Promise<string> {
    const [program, ...rest] = commandOf(image, args);
    const { stdout, stderr } = await run(program, rest, { env: {} });
    return stdout + stderr;
  }

  for (const [image, program] of [
    ["proxyv2", "pilot-agent"],
    ["pilot", "pilot-discovery"],
  ] as const) {
    test(`${program} of the image runs with the flags and the environment of bin/${program}`, () => {
      const [first = ""] = readFileSync(join(treeOf(image), "usr/local/bin", program), "utf8").split("\n");
      const { NODE_OPTIONS = "", ...environment } = environmentOf(image);
      assert.deepEqual(nodeFlags(`${first} ${NODE_OPTIONS}`).sort(), scriptFlags(program).sort());
      assert.deepEqual({ ...environment, ...scriptEnvironment(program) }, environment);
    });
  }

  for (const image of ["proxyv2", "pilot"]) {
    test(`${image}.Dockerfile says what is tested here`, () => {
      const lines = readFileSync(join(ROOT, `images/${image}.Dockerfile`), "utf8").split("\n");
      assert.ok(lines.includes(`RUN /src/images/assemble.sh ${image} /image`));
      assert.ok(lines.includes("COPY --from=files /image /"));
      assert.ok(lines.includes("USER 1337:1337"));
      assert.ok(lines.includes("WORKDIR /"));
      assert.deepEqual(
        lines
          .filter((line) => /^(ARG BASE|FROM|CMD)/.test(line))
          .map((line) => line.replace(/sha256:[0-9a-f]{64}/, "DIGEST")),
        [
          "ARG BASE_DISTRIBUTION=distroless",
          "FROM debian:bookworm-slim@DIGEST AS files",
          "FROM debian:bookworm-slim@DIGEST AS debug",
          "FROM scratch AS distroless",
          // biome-ignore lint/suspicious/noTemplateCurlyInString: Docker fills it in.
          "FROM ${BASE_DISTRIBUTION:-distroless}",
        ],
      );
      const [entry = ""] = JSON.parse(lines.find((line) => line.startsWith("ENTRYPOINT "))?.slice(11) ?? "[]");
      assert.ok(existsSync(join(treeOf(image), entry)), entry);
      const copied = lines.flatMap((line) => /^COPY (?!--)(\S+) /.exec(line)?.[1] ?? []);
      assert.ok(copied.length >= 3);
      for (const source of copied) assert.equal(globSync(source, { cwd: ROOT }).length, 1, source);
    });

    test(`${image} holds no shell, and nothing that a user may change`, async () => {
      const tree = treeOf(image);
      assert.deepEqual(globSync("usr/bin/*", { cwd: tree }), []);
      const loose = await run("find", [tree, "-perm", "/o=w", "-not", "-type", "l"]);
      assert.equal(loose.stdout.trim(), join(tree, "tmp"));
      const special = await run("find", [tree, "-perm", "/u=s,g=s", "-o", "-not", "-user", "root"]);
      assert.equal(special.stdout, "");
    });
  }

  test("each program answers", async () => {
    assert.match(await output("proxyv2", "/usr/local/bin/pilot-agent", "version"), /Program:"mizzen"/);
    assert.match(await output("pilot", "/usr/local/bin/pilot-discovery", "version"), /Program:"mizzen"/);
    assert.match(await output("proxyv2", "/usr/local/bin/envoy", "--version"), /1\.40\.0/);
    for (const program of ["iptables", "ip6tables-restore", "iptables-legacy", "iptables-save", "nft"]) {
      assert.match(await output("proxyv2", `/usr/sbin/${program}`, "--version"), /tables.* v/, program);
    }
    const rules = await output("proxyv2", "/usr/local/bin/pilot-agent", "istio-iptables", "--dry-run", "-p", "15001");
    assert.match(rules, /ISTIO_OUTPUT/);
  });

  test("a control plane and an agent with its Envoy run together from the images", async () => {
    const listen = ["http", "grpc", "secureGRPC", "monitoring"].map((name) => `--${name}Addr=127.0.0.1:0`);
    const flags = ["discovery", "--registries=", "--httpsAddr=", "--ctrlz_port=0", "--shutdownDuration=0s", ...listen];
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k" }] });
    const token = await new SignJWT({ sub: "system:serviceaccount:default:httpbin" })
      .setProtectedHeader({ alg: "ES256", kid: "k" })
      .setIssuer("test")
      .setAudience("istio-ca")
      .setExpirationTime("1h")
      .sign(privateKey);
    const env = { ...environmentOf("pilot"), ROOT_CA_DIR: CA, JWT_RULE: JSON.stringify({ issuer: "test", jwks }) };
    // They share the network of this machine.
    const [proxyListenPort, proxyInboundListenPort] = await freePorts(2);
    const mesh = JSON.stringify({ proxyListenPort, proxyInboundListenPort });
    writeFileSync(join(treeOf("pilot"), "etc/istio/config/mesh"), mesh);
    await using plane = started("pilot", ["/usr/local/bin/pilot-discovery", ...flags], env);
    const [, xds = ""] = await plane.logged(/starting secure gRPC discovery service at (\S+)/);
    // What Kubernetes mounts: the root that the control plane made, and the token of the pod.
    writePodFiles(treeOf("proxyv2"), readFileSync(`/proc/${plane.pid}/root${CA}/root-cert.pem`, "utf8"));
    writeFileSync(join(treeOf("proxyv2"), "var/run/secrets/tokens/istio-token"), token);
    const proxyConfig = JSON.stringify({ binaryPath: "/usr/local/bin/envoy", discoveryAddress: xds });
    const agent = ["/usr/local/bin/pilot-agent", "proxy", "sidecar", "--domain", "default.svc.cluster.local"];
    const machine = { XDS_ROOT_CA: "SYSTEM", CA_ROOT_CA: "SYSTEM" };
    for (const trust of [{}, { ...machine, SSL_CERT_FILE: "/var/run/secrets/istio/root-cert.pem" }]) {
      const ports = await agentPorts();
      const env = {
        ...agentEnvironment(ports, { proxyConfig, CA_ADDR: xds }),
        NODE_OPTIONS: environmentOf("proxyv2").NODE_OPTIONS ?? "",
        ...trust,
      };
      await using proxy = started("proxyv2", agent, env);
      await agentReady(ports, proxy.text);
      const status = readFileSync(`/proc/${proxy.pid}/status`, "utf8");
      assert.match(status, /^Uid:\t1337\t1337\t1337\t1337$/m);
      assert.match(status, /^CapEff:\t0+$/m);
    }
  });

  function started(image: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    const [program, ...rest] = commandOf(image, args);
    const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    const child: ChildProcess = spawn(program, rest, {
      env: { PATH: path, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const printed: string[] = [];
    for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk) => printed.push(String(chunk)));
    const text = () => printed.join("");
    return {
      pid: child.pid,
      text,
      logged: async (pattern: RegExp) => {
        await eventually(`${pattern} in what ${image} prints: ${text()}`, () => pattern.test(text()), 60_000);
        return pattern.exec(text()) ?? [];
      },
      [Symbol.asyncDispose]: async () => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        child.kill("SIGTERM");
        child.kill("SIGINT");
        await once(child, "exit");
      },
    };
  }
});
