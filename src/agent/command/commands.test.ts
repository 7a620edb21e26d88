import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Command } from "commander";
import { eventually, temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { freePorts } from "../../../test/support/free-ports.ts";
import { addLogFlags, flagLines, loggerOf } from "./log-flags.ts";
import { commandFirst, goSwitches } from "./switches.ts";
import { nextPause } from "./wait-command.ts";
import { wholeNumber } from "./whole-number.ts";

const PROGRAM = join(import.meta.dirname, "../../bin/pilot-agent.ts");

async function run(...args: string[]) {
  const child = spawn(process.execPath, [PROGRAM, ...args], { env: { PATH: process.env.PATH } });
  let [out, err] = ["", ""];
  child.stdout.on("data", (chunk) => {
    out += chunk;
  });
  child.stderr.on("data", (chunk) => {
    err += chunk;
  });
  const [code] = await once(child, "close");
  return { code, out, err };
}

async function webServer(t: { after(fn: () => void): void }, status: () => number) {
  const server = createServer((request, response) =>
    response.writeHead(status()).end(`${request.method} ${request.url}`),
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

test("goSwitches() turns Go's switches with a value into switches", () => {
  const args = ["proxy", "--log_as_json=true", "--profiling=false", "--log_as_json=0", "--domain=a=b", "sidecar"];
  assert.deepEqual(goSwitches(args), ["proxy", "--log_as_json", "--no-profiling", "--domain=a=b", "sidecar"]);
  assert.deepEqual(goSwitches(["version", "-s=false", "-s=true"]), ["version", "-s"]);
});

test("commandFirst() finds the command behind flags and their values", () => {
  for (const [given, expected] of [
    ["--nosuch=1 proxy router", "proxy --nosuch=1 router"],
    ["--nosuch 1 version", "version --nosuch 1"],
    ["--log_as_json --log_target stdout version -s", "version --log_as_json --log_target stdout -s"],
    ["--help version", "version --help"],
    ["proxy --a b", "proxy --a b"],
    ["--nosuch version", "--nosuch version"],
    ["-- version", "-- version"],
    ["", ""],
  ] as const) {
    const words = given.split(" ").filter((word) => word !== "");
    assert.equal(commandFirst(words).join(" "), expected);
  }
});

test("wholeNumber() reads what Go's programs read, and refuses what no 64 bits hold", () => {
  const read = wholeNumber("--x");
  const spelled = ["-7", "+7", "0", "0x1F", "0b101", "0o17", "017", "1_000", "0x_f", "-0"];
  assert.deepEqual(spelled.map(read), [-7, 7, 0, 31, 5, 15, 15, 1000, 15, 0]);
  for (const text of ["", "-", "1.5", "abc", "08", "1__0", "_1", "1_", "0x", " 1"])
    assert.throws(() => read(text), /it must be a whole number/, text);
  assert.throws(() => read("99999999999999999999"), /invalid argument "9+" for "--x" flag: value out of range/);
});

test("loggerOf() reads flags of the program and of the command, which wins", async (t) => {
  const file = join(temporaryFolder(t), "log");
  const program = addLogFlags(new Command());
  const command = addLogFlags(new Command("x")).action(() => undefined);
  program.addCommand(command);
  await program.parseAsync(
    [
      "--log_output_level=default:error",
      "--log_target",
      file,
      "x",
      "--log_output_level=default:debug,dns:none",
      "--log_as_json",
    ],
    {
      from: "user",
    },
  );
  const log = loggerOf(command);
  log.debug("seen");
  log.scope("dns").error("not seen");
  assert.match(readFileSync(file, "utf8"), /^{"level":"debug","time":"[^"]+","msg":"seen"}\n$/);
});

test("loggerOf() refuses a level that is none, and a file that cannot be written", async () => {
  for (const [flag, message] of [
    ["--log_output_level=loud", /unknown log level "loud"/],
    ["--log_target=/nowhere/log", /cannot write to \/nowhere\/log/],
  ] as const) {
    const program = addLogFlags(new Command()).action(() => undefined);
    await program.parseAsync([flag], { from: "user" });
    assert.throws(() => loggerOf(program), message);
  }
});

test("wait ends when the proxy answers 200, and fails when it does not in time", async (t) => {
  let asked = 0;
  const port = await webServer(t, () => (++asked < 3 ? 503 : 200));
  assert.equal((await run("wait", "--url", `http://127.0.0.1:${port}/healthz/ready`, "--periodMillis", "10")).code, 0);
  const never = await webServer(t, () => 503);
  const { code, err } = await run(
    "wait",
    "--url",
    `http://127.0.0.1:${never}/`,
    "--periodMillis",
    "10",
    "--timeoutSeconds",
    "1",
  );
  assert.equal(code, 255);
  assert.match(err, /^Error: timeout waiting for Envoy proxy to become ready\. Last error: HTTP status code 503$/m);
});

test("wait asks often while the proxy may be starting, and a slow one twice a second", () => {
  const asked = [60];
  for (let now = 60; now < 1_000; asked.push(now)) now += nextPause(now);
  assert.ok(asked.filter((time) => time < 500).length > 4, `${asked}`);
  assert.ok(asked.length < 20, `${asked}`);
  assert.equal(nextPause(10_000), 500);
});

test("wait follows redirects, and not for ever", async (t) => {
  const server = createServer((request, response) => {
    if (request.url === "/end") response.end();
    else response.writeHead(302, { location: request.url === "/near" ? "end" : "/loop" }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  const url = (path: string) => `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}${path}`;
  assert.equal((await run("wait", "--url", url("/near"))).code, 0);
  const { code, err } = await run("wait", "--url", url("/loop"), "--timeoutSeconds", "1");
  assert.deepEqual([code, /stopped after 10 redirects$/m.test(err)], [255, true]);
});

test("wait says what it waited for in plain words, whatever it was told", async (t) => {
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => silent.close().closeAllConnections());
  const address = silent.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const limits = ["--timeoutSeconds", "1", "--requestTimeoutMillis", "100", "--periodMillis=-1"];
  const { err } = await run("wait", "--url", `http://127.0.0.1:${port}/`, ...limits);
  assert.match(err, /^Error: timeout waiting .* no answer in 100 ms\n$/);
  const other = await run("wait", "--url", `ftp://127.0.0.1:${port}/`, ...limits);
  assert.match(other.err, /Last error: unsupported protocol "ftp:"/);
});

test("wait without time fails, whoever is ready, and a request without a limit has what there is", async (t) => {
  const port = await webServer(t, () => 200);
  const url = `http://127.0.0.1:${port}/`;
  for (const seconds of ["0", "-1"]) {
    const { code, err } = await run("wait", "--url", url, "--timeoutSeconds", seconds);
    assert.equal(code, 255);
    assert.match(err, /^Error: timeout waiting for Envoy proxy to become ready\. Last error: not asked/m);
  }
  assert.equal((await run("wait", "--url", url, "--requestTimeoutMillis", "0")).code, 0);
});

test("request asks only the ports of a proxy, and says that nobody answers", async () => {
  const other = await run("request", "GET", "stats", "--debug-port", "80");
  assert.equal(other.code, 255);
  assert.match(other.err, /^Error: debug port 80 is not in allowed list \[15000 15004 15020 15021\]$/m);
  const port = await closedPort([15000, 15004, 15020, 15021]);
  const refused = await run("request", "GET", "/stats", "--debug-port", String(port));
  assert.equal(refused.code, 255);
  assert.match(refused.err, new RegExp(`^Error: GET http://localhost:${port}/stats`, "m"));
});

test("the program lists its commands and tells its version", async () => {
  const { out } = await run("--help");
  for (const name of ["proxy", "istio-iptables", "istio-clean-iptables", "request", "wait", "version", "completion"]) {
    assert.match(out, new RegExp(`^  ${name}`, "m"));
  }
  assert.match((await run("version", "-o", "json")).out, /"version": "1\.29\.6"/);
});

test("collateral writes pages about every command and scripts for shells", async (t) => {
  const folder = join(temporaryFolder(t), "new", "folder");
  assert.equal((await run("collateral", "--all", "-o", folder)).code, 0);
  const files = readdirSync(folder);
  for (const file of [
    "pilot-agent.md",
    "pilot-agent_proxy.md",
    "pilot-agent_completion_bash.yaml",
    "pilot-agent-wait.pilot-agent CLI",
    "pilot-agent.html",
    "pilot-agent.bash",
    "_pilot-agent",
  ]) {
    assert.ok(files.includes(file), file);
  }
  assert.match(readFileSync(join(folder, "pilot-agent_proxy.md"), "utf8"), /## pilot-agent proxy[\s\S]*--concurrency/);
  const one = temporaryFolder(t);
  await run("collateral", "--markdown", "-o", one);
  assert.ok(readdirSync(one).every((file) => file.endsWith(".md")));
});

test("collateral says when it cannot write", async () => {
  const { code, err } = await run("collateral", "--all", "-o", "/dev/null/x");
  assert.equal(code, 255);
  assert.match(err, /^Error: Cannot write to \/dev\/null\/x: /m);
});

test("a command that there is not, a flag that there is not, and a missing argument end with 255 and a line in the log", async () => {
  for (const args of [["nocommand"], ["version", "--bogus"], ["request", "GET"]]) {
    const { code, out, err } = await run(...args);
    assert.equal(code, 255);
    assert.match(err, /^Error: /);
    assert.match(out, /\terror\t/);
  }
  assert.match((await run("version", "--bogus")).err, /^Error: unknown flag: --bogus$/m);
  assert.match((await run("nocommand")).err, /^Error: unknown command "nocommand" for "pilot-agent"$/m);
});

test("a command that is misspelled is told which one may be meant, a flag without a value that it needs one", async () => {
  for (const [word, meant] of [
    ["versio", "version"],
    ["PROXY", "proxy"],
    ["rqeuest", "request"],
    ["istio", "istio-clean-iptables\n\tistio-iptables"],
  ]) {
    const expected = `unknown command "${word}" for "pilot-agent"\n\nDid you mean this?\n\t${meant}\n\nRun 'pilot-agent --help' for usage.`;
    assert.equal(await refusal(word ?? ""), expected);
  }
  assert.equal(
    await refusal("open-socket"),
    `unknown command "open-socket" for "pilot-agent"\nRun 'pilot-agent --help' for usage.`,
  );
  assert.equal(await refusal("proxy", "--concurrency"), "flag needs an argument: --concurrency");
});

test("values that a flag cannot take are told with the flag", async () => {
  for (const flag of ["--concurrency=x", "--stsPort=1.5", "--log_as_json=maybe", "--profiling=2", "--vklog=high"]) {
    const [name = "", value = ""] = flag.split("=");
    const { code, err } = await run("proxy", flag);
    assert.equal(code, 255);
    assert.match(err, new RegExp(`^Error: invalid argument "${value}" for "${name}" flag: it must be `, "m"));
  }
  for (const flag of [
    "--concurrency=2147483648",
    "--concurrency=-2147483649",
    "--stsPort=65536",
    "--vklog=2147483648",
  ]) {
    const [name = "", value = ""] = flag.split("=");
    assert.deepEqual(
      await refusal("proxy", flag),
      `invalid argument "${value}" for "${name}" flag: value out of range`,
    );
  }
});

/** The line of a command that fails. */
async function refusal(...args: readonly string[]): Promise<string> {
  const { code, err } = await run(...args);
  assert.equal(code, 255);
  return err.trim().replace(/^Error: /, "");
}

test("a failure is logged where and how the flags say", async (t) => {
  const file = join(temporaryFolder(t), "log");
  const { out, err } = await run("proxy", "nobody", "--log_target", file, "--log_as_json", "--log_output_level=error");
  assert.deepEqual([out, /^Error: invalid proxy Type: nobody: it must be sidecar or router$/m.test(err)], ["", true]);
  assert.match(readFileSync(file, "utf8"), /^{"level":"error",.*"msg":"invalid proxy Type: nobody: .*\n$/);
  assert.equal((await run("proxy", "nobody", "--log_output_level=none")).out, "");
});

test("a full disk under the log does not keep an agent from starting, and from ending when it is told to", async (t) => {
  const folder = temporaryFolder(t);
  const [statusPort = 0, proxyAdminPort = 0] = await freePorts(2);
  const full = openSync("/dev/full", "w");
  t.after(() => closeSync(full));
  const child = spawn(process.execPath, [PROGRAM, "proxy", "--log_target=stdout", "--log_target=/dev/full"], {
    cwd: folder,
    env: {
      PATH: process.env.PATH,
      INSTANCE_IP: "127.0.0.1",
      CLOUD_PLATFORM: "none",
      PROXY_XDS_DEBUG_VIA_AGENT: "false",
      DISABLE_ENVOY: "true",
      CA_ROOT_CA: "SYSTEM",
      XDS_ROOT_CA: "SYSTEM",
      PROXY_CONFIG: JSON.stringify({ statusPort, proxyAdminPort }),
    },
    stdio: ["ignore", full, "pipe"],
  });
  t.after(() => child.kill("SIGKILL"));
  let err = "";
  child.stderr?.on("data", (chunk) => {
    err += chunk;
  });
  const port = `http://127.0.0.1:${statusPort}/`;
  await eventually(
    () => `its status port: ${err}`,
    async () => (await fetch(port).catch(() => undefined)) !== undefined,
  );
  assert.equal(err.match(/^log write error: ENOSPC: .*; lines are lost$/gm)?.length, 2);
  child.kill("SIGTERM");
  const [code] = await once(child, "close");
  assert.equal(code, 0);
});

test("switches take Go's values, and scripts need no descriptions", async () => {
  assert.match((await run("version", "--short=false")).out, /BuildInfo/);
  assert.equal((await run("completion", "bash", "--no-descriptions")).code, 0);
});

test("help is in the form of Istio's programs, on stdout, also without a command", async () => {
  const proxy = (await run("proxy", "--help")).out;
  assert.match(proxy, /^XDS proxy agent\n\nUsage:\n {2}pilot-agent proxy \[flags\]\n/);
  assert.match(proxy, /^ {2}-h, --help {28}help for proxy$/m);
  assert.match(proxy, /^ {6}--serviceCluster string {11}Service cluster \(default "istio-proxy"\)$/m);
  assert.match(proxy, /^ {6}--concurrency int {17}number of worker threads to run$/m);
  assert.match(proxy, /\nGlobal Flags:\n {6}--log_as_json /);
  const { code, out, err } = await run();
  assert.deepEqual([code, err], [0, ""]);
  assert.match(out, /^Istio Pilot agent runs in .*\n\nUsage:\n {2}pilot-agent \[command\]\n\nAvailable Commands:\n/);
  assert.equal((await run("help", "proxy")).out, proxy);
});

test("the program tolerates unknown flags before a command", async () => {
  const { code, err } = await run("--trust-domain=cluster.local");
  assert.deepEqual([code, /unknown/.test(err)], [0, false]);
});

test("proxy ignores flags that it does not know, with their values, wherever they stand", async () => {
  const typed = async (...args: string[]) => /invalid proxy Type: (\S+):/.exec((await run("proxy", ...args)).err)?.[1];
  assert.equal(await typed("--trust-domain=cluster.local", "nobody"), "nobody");
  assert.equal(await typed("--controlPlaneAuthPolicy", "NONE", "nobody", "-x", "y"), "nobody");
  assert.equal(await typed("--old", "--proxyLogLevel", "--warning", "nobody", "--gone"), "nobody");
  assert.equal(await typed("--domain=d", "--old=a=b", "--concurrency", "2", "nobody"), "nobody");
  assert.equal(await typed("--old", "--", "--nobody"), "--nobody");
  const help = await run("proxy", "--old", "--help");
  assert.deepEqual([help.code, /Usage:\n {2}pilot-agent proxy/.test(help.out)], [0, true]);
});

test("help about what there is not shows the commands, and is no failure", async () => {
  const { code, out, err } = await run("help", "nothing");
  assert.deepEqual([code, out], [0, ""]);
  assert.match(err, /\nAvailable Commands:\n/);
});

test("loggerOf() rotates a file, and refuses limits that are none", async (t) => {
  const file = join(temporaryFolder(t), "agent.log");
  const program = addLogFlags(new Command()).action(() => undefined);
  await program.parseAsync(
    ["--log_rotate", file, "--log_caller=all", "--log_target=stderr", "--log_output_level=none,dns:info"],
    {
      from: "user",
    },
  );
  loggerOf(program).scope("dns").info("kept");
  assert.match(readFileSync(file, "utf8"), /\tinfo\tdns\tcommand\/commands\.test\.ts:\d+\tkept\n$/);
  for (const flag of ["--log_rotate_max_age", "--log_rotate_max_backups", "--log_rotate_max_size"])
    assert.throws(
      () => addLogFlags(new Command()).parse([`${flag}=x`], { from: "user" }),
      new RegExp(`invalid argument "x" for "${flag}" flag: it must be a whole number`),
    );
});

test("flagLines() shows every flag with its value, as Istio's programs do", async () => {
  const program = addLogFlags(new Command()).action(() => undefined);
  await program.parseAsync(["--log_target=stdout", "--log_target=/tmp/x"], { from: "user" });
  assert.deepEqual(flagLines(program).slice(0, 3), [
    'FLAG: --help="false"',
    'FLAG: --log_as_json="false"',
    'FLAG: --log_caller=""',
  ]);
  assert.ok(flagLines(program).includes('FLAG: --log_target="[stdout,/tmp/x]"'));
});

/** One of the ports at which nobody listens at present: agents of other tests have some of them. */
async function closedPort(ports: readonly number[]): Promise<number> {
  for (const port of ports) {
    const socket = connect(port, "localhost");
    const [isOpen] = await Promise.race([
      once(socket, "connect").then(() => [true]),
      once(socket, "error").then(() => [false]),
    ]).catch(() => [false]);
    socket.destroy();
    if (!isOpen) return port;
  }
  throw new Error(`somebody listens on each of ${ports.join(", ")}`);
}
