import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, test } from "node:test";
import type { Command } from "commander";
import { object, service } from "../../../test/support/objects.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { xCommand } from "./x-command.ts";

const SECRET = Buffer.alloc(32, "s").toString("base64url");
const WORKLOADS = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: prod}
spec: {template: {metadata: {labels: {app: web}}, spec: {serviceAccountName: web-account}}}
---
apiVersion: v1
kind: Pod
metadata: {name: old, namespace: prod, labels: {app: old}, annotations: {sidecar.istio.io/inject: "false"}}
---
${service("prod/web", { name: "http", port: 80, targetPort: 8080 }, { name: "tcp-db", port: 90 })}
${service("prod/old", { name: "http", port: 80 })}
`;

describe("mizzen x", () => {
  let folder: string;
  let printed: string;
  let said: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "x-commands-"));
    writeFileSync(join(folder, "workloads.yaml"), WORKLOADS);
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
    process.exitCode = undefined;
  });

  async function run(...args: readonly string[]): Promise<string> {
    printed = "";
    said = "";
    const terminal = {
      print: (text: string) => {
        printed += text;
      },
      say: (line: string) => {
        said += `${line}\n`;
      },
    };
    const command = xCommand(terminal as Terminal);
    const all = (one: Command): readonly Command[] => [one, ...one.commands.flatMap(all)];
    for (const one of all(command)) one.exitOverride();
    await command.parseAsync([...args, "-f", folder], { from: "user" });
    return printed;
  }

  const write = (text: string) => writeFileSync(join(folder, "policies.yaml"), text);
  const explain = (...args: readonly string[]) => run("authz", "explain", ...args);

  test("authz explain says verdict, policy, rule and field, with file and line", async () => {
    write(`apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: read, namespace: prod}
spec:
  rules:
  - to:
    - operation:
        methods: [GET]
        ports: ["8080"]
`);
    const read = ["--from", "prod/client", "--to", "web:80"];
    assert.match(await explain(...read), /^verdict: ALLOWED$/m);
    assert.match(printed, /^decided by: AuthorizationPolicy\/prod\/read rule 0 \(ALLOW\) at .*policies\.yaml:6$/m);
    assert.match(await explain(...read, "--method", "PUT"), /^verdict: DENIED$/m);
    assert.match(printed, /operation\.methods: \[GET\], but the request has PUT \(.*policies\.yaml:8\)/);
    const { verdict, rules } = JSON.parse(await explain(...read, "-o", "json"));
    assert.deepEqual([verdict, rules[0].policy], ["allowed", "AuthorizationPolicy/prod/read"]);
    assert.match(await explain("--from", "prod/client", "--to", "web.prod:90"), /not seen in TCP/);
  });

  test("authz explain knows mutual TLS, trust domains and what plain text proves", async () => {
    write(
      object("AuthorizationPolicy", "prod/of-client", {
        rules: [{ from: [{ source: { serviceAccounts: ["client"] } }] }],
      }) +
        object("PeerAuthentication", "prod/default", {
          mtls: { mode: "STRICT" },
          selector: { matchLabels: { app: "web" } },
        }),
    );
    assert.match(await explain("--from", "client", "--to", "web"), /verdict: ALLOWED/);
    assert.match(await explain("--from", "spiffe://x/ns/prod/sa/client", "--to", "web"), /verdict: ALLOWED/);
    assert.match(await explain("--from", "dev/client", "--to", "web"), /verdict: DENIED/);
    assert.match(await explain("--to", "web"), /plain text is refused.*PeerAuthentication\/prod\/default/);
    assert.match(await explain("--from", "client", "--to", "old"), /no proxy: nothing is enforced/);
  });

  test("authz explain reads tokens and claims as the proxy would", async () => {
    const jwks = JSON.stringify({ keys: [{ kty: "oct", k: SECRET }] });
    write(
      object("RequestAuthentication", "prod/tokens", { jwtRules: [{ issuer: "me", jwks }] }) +
        object("AuthorizationPolicy", "prod/admins", {
          rules: [{ when: [{ key: "request.auth.claims[groups]", values: ["admin"] }] }],
        }),
    );
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const text = `${part({ alg: "HS256" })}.${part({ iss: "me", sub: "joe", groups: ["admin"] })}`;
    const good = createHmac("sha256", Buffer.from(SECRET, "base64url")).update(text).digest("base64url");
    writeFileSync(join(folder, "good.jwt"), `${text}.${good}\n`);
    writeFileSync(join(folder, "bad.jwt"), `${text}.x`);
    assert.match(await explain("--to", "web", "--jwt", join(folder, "good.jwt")), /verdict: ALLOWED/);
    assert.match(
      await explain("--to", "web", "--jwt", join(folder, "bad.jwt")),
      /status 401, the token is refused: no key/,
    );
    assert.match(await explain("--to", "web", "--claims", '{"iss":"me","groups":"admin"}'), /verdict: ALLOWED/);
    assert.match(await explain("--to", "web", "--claims", '{"iss":"you"}'), /no rule accepts issuer "you"/);
    assert.match(await explain("--to", "web"), /but the request has none \(no token\)/);
  });

  test("authz explain sees the path as the proxy does", async () => {
    write(
      object("AuthorizationPolicy", "prod/no-admin", {
        action: "DENY",
        rules: [{ to: [{ operation: { paths: ["/admin"] } }] }],
      }),
    );
    assert.match(await explain("--to", "web", "--path", "/x/../admin?y"), /verdict: DENIED/);
    assert.match(await explain("--to", "web", "--path", "/%61dmin"), /verdict: DENIED/);
    assert.match(await explain("--to", "web", "--path", "/admin#x"), /status 400/);
    assert.match(await explain("--to", "web", "--path", "/"), /verdict: ALLOWED/);
  });

  test("authz check prints istioctl's table", async () => {
    write(
      object("AuthorizationPolicy", "prod/b", { rules: [{}, { to: [{ operation: { ports: ["1"] } }] }] }) +
        object("AuthorizationPolicy", "prod/a", {
          action: "DENY",
          rules: [{ to: [{ operation: { methods: ["GET"] } }] }],
        }) +
        object("AuthorizationPolicy", "dev/c", { rules: [{}] }),
    );
    assert.equal(
      await run("authz", "check", "web"),
      [
        "ACTION   AuthorizationPolicy   RULES",
        "DENY     a.prod                1",
        "ALLOW    b.prod                2",
        "",
      ].join("\n"),
    );
    assert.deepEqual(JSON.parse(await run("authz", "check", "web", "-o", "json")), [
      { action: "DENY", policy: "a.prod", rules: 1 },
      { action: "ALLOW", policy: "b.prod", rules: 2 },
    ]);
  });

  test("mtls marks pairs that cannot talk and names what decides", async () => {
    write(
      object("PeerAuthentication", "istio-system/strict", { mtls: { mode: "STRICT" } }) +
        object("PeerAuthentication", "prod/port", {
          selector: { matchLabels: { app: "web" } },
          portLevelMtls: { 90: { mode: "DISABLE" } },
        }),
    );
    const text = await run("mtls");
    assert.match(text, /^old\.prod +X plain to STRICT +plain +plain$/m);
    assert.match(text, /^web\.prod +mTLS +X mTLS to DISABLE +plain$/m);
    assert.match(text, /web\.prod:90 +mTLS +auto mTLS +DISABLE +PeerAuthentication\/prod\/port port 90 +NO/);
    assert.match(text, /web\.prod:8080 +plain +no proxy +STRICT +PeerAuthentication\/istio-system\/strict +NO/);
    assert.equal(JSON.parse(await run("mtls", "-o", "json")).length, 6);
  });

  test("says what is wrong with files and names, and goes on with the rest", async () => {
    write(
      `${object("AuthorizationPolicy", "prod/bad", { rules: [{ to: [{ operation: { ports: ["x"] } }] }] })}\n---\n{`,
    );
    const text = await explain("--to", "web");
    assert.match(text, /verdict: DENIED\nbecause: an object cannot be read/);
    assert.match(text, /decided by: AuthorizationPolicy\/prod\/bad .*policies\.yaml:1/);
    assert.match(said, /note: .*policies\.yaml:1: AuthorizationPolicy\/prod\/bad/);
    await explain("--to", "nobody");
    assert.match(said, /No workload "nobody": there are web\.prod, old\.prod/);
    assert.equal(process.exitCode, 2);
    await assert.rejects(explain("--to", "web", "--claims", "["), /must be JSON/);
    await assert.rejects(explain("--to", "web", "--header", "x"), /NAME=VALUE/);
  });
});
