import assert from "node:assert/strict";
import { test } from "node:test";
import { createLogger, type Logger, type LogOptions, parseLogLevels } from "./log.ts";

const now = () => new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 678));

function lines(options: Partial<LogOptions>, use: (log: ReturnType<typeof createLogger>) => void): string {
  let text = "";
  use(
    createLogger({
      now,
      write: (line) => {
        text += line;
      },
      ...options,
    }),
  );
  return text;
}

test("a line has time, level, scope, message and fields", () => {
  assert.equal(
    lines({}, (log) => {
      log.info("Proxy role", { type: "sidecar", id: undefined });
      log.scope("dns").warn("slow");
      log.debug("not shown");
    }),
    "2026-01-02T03:04:05.678000Z\tinfo\tProxy role\ttype=sidecar\n2026-01-02T03:04:05.678000Z\twarn\tdns\tslow\n",
  );
});

test("a list is in brackets in a line of text, and a list in JSON", () => {
  const tell = (log: Logger) => log.info("Proxy role", { ips: ["10.0.0.1", "::1"] });
  assert.match(lines({}, tell), /\tProxy role\tips=\[10\.0\.0\.1 ::1\]\n$/);
  assert.deepEqual(JSON.parse(lines({ json: true }, tell)).ips, ["10.0.0.1", "::1"]);
});

test("a field keeps to its line, whatever is in it", () => {
  const tell = (log: Logger) => log.info("question", { name: "a\n2026\terror\tb\u001b[31m", ips: ["1\n2"] });
  assert.match(lines({}, tell), /\tname=a\\u000a2026\\u0009error\\u0009b\\u001b\[31m ips=\[1\\u000a2\]\n$/);
});

test("a message keeps to its line, whatever is in it; only a block behind it has lines", () => {
  const forged = "refused: a\n2026\terror\tb\u001b[31m";
  const tell = (log: Logger) => log.warn(forged, { n: 1 });
  assert.match(lines({}, tell), /\twarn\trefused: a\\u000a2026\\u0009error\\u0009b\\u001b\[31m\tn=1\n$/);
  assert.equal(JSON.parse(lines({ json: true }, tell)).msg, forged);
  const show = (log: Logger) => log.info("state:", {}, "\nx: 1\ny: 2");
  assert.match(lines({}, show), /\tinfo\tstate:\nx: 1\ny: 2\n$/);
  assert.equal(JSON.parse(lines({ json: true }, show)).msg, "state:\nx: 1\ny: 2");
});

test("a scope has its own level, else that of all, else info; that of the default scope is its own", () => {
  const levels = { default: "error", ads: "debug", dns: "error" } as const;
  const text = lines({ levels }, (log) => {
    log.warn("a");
    log.scope("ads").debug("b");
    log.scope("dns").warn("c");
    log.scope("sds").info("d");
    log.scope("sds").debug("e");
  });
  assert.match(text, /^[^\n]*debug\tads\tb\n[^\n]*info\tsds\td\n$/);
  assert.match(
    lines({ levels: { all: "none" } }, (log) => log.error("x")),
    /^$/,
  );
});

test("callers and stack traces are added where they are asked for", () => {
  const callers = new Set(["dns"]);
  const text = lines({ callers }, (log) => {
    log.info("plain");
    log.scope("dns").info("named");
  });
  assert.match(text, /info\tplain\n.*\tinfo\tdns\tlog\/log\.test\.ts:\d+\tnamed\n$/);
  const traced = lines({ stackLevels: { default: "error" } }, (log) => {
    log.warn("no");
    log.error("yes");
  });
  assert.match(traced, /warn\tno\n.*error\tyes\nat .*log\.test\.ts:\d+:\d+\)?\n/);
});

test("JSON has one object per line", () => {
  const text = lines({ json: true, callers: new Set(["all"]) }, (log) => log.scope("sds").info('a "b"', { n: 1 }));
  const { caller, ...rest } = JSON.parse(text);
  assert.match(caller, /^log\/log\.test\.ts:\d+$/);
  assert.deepEqual(rest, { level: "info", time: "2026-01-02T03:04:05.678000Z", scope: "sds", msg: 'a "b"', n: 1 });
});

test("parseLogLevels() reads levels by scope and tells what is none", () => {
  assert.deepEqual(parseLogLevels("warn,ads:debug"), { levels: { default: "warn", ads: "debug" }, problems: [] });
  assert.deepEqual(parseLogLevels("ads:debug,all:error,dns:info").levels, { all: "error", dns: "info" });
  assert.equal(parseLogLevels("ads:loud").problems.length, 1);
  assert.deepEqual(parseLogLevels("a:b:info").problems, ['"a:b:info" is not of the form scope:level']);
  assert.deepEqual(parseLogLevels(""), { levels: {}, problems: [] });
  for (const text of [",", "info,", ",info", "ads:info,,dns:info", "default:"])
    assert.match(parseLogLevels(text).problems[0] ?? "", /^unknown log level ""/, text);
});
