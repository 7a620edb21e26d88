import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHmac } from "node:crypto";
import { copyFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { meshUnavailable, mizzen, type RunningMesh, scratchFolder, upMesh } from "../../support/mesh-run.ts";

const SECRET = Buffer.alloc(32, "a secret").toString("base64url");
const JWKS = JSON.stringify({ keys: [{ kty: "oct", alg: "HS256", k: SECRET }] });
const HOUR = 3600;
const now = Math.round(Date.now() / 1000);
const HTTPBIN = "http://httpbin.foo:8000";

type Caller = "sleep.foo" | "sleep.bar" | "sleep.legacy" | "gateway";

interface Row {
  readonly from: Caller;
  /** Path of httpbin, or port of tcp-echo. */
  readonly call: string | number;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Status; 0 when there is no answer. For TCP 200 is an echo. */
  readonly want: number;
}

function policy(kind: string, name: string, spec: object): object {
  const [namespace = "", short = ""] = name.split("/");
  return { apiVersion: "security.istio.io/v1", kind, metadata: { name: short, namespace }, spec };
}

const authorization = (name: string, spec: object) => policy("AuthorizationPolicy", `foo/${name}`, spec);
const ofHttpbin = { selector: { matchLabels: { app: "httpbin" } } };
const ofTcpEcho = { selector: { matchLabels: { app: "tcp-echo" } } };
const principal = (account: string, domain = "new.example") => `${domain}/ns/${account.replace("/", "/sa/")}`;

function token(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "HS256" })}.${part({ iss: "me", sub: "joe", aud: "web", exp: now + HOUR, ...claims })}`;
  return `${text}.${createHmac("sha256", Buffer.from(SECRET, "base64url")).update(text).digest("base64url")}`;
}

const bearer = (claims: object) => ({ authorization: `Bearer ${token(claims)}` });

describe("security of a mesh", { skip: meshUnavailable() }, () => {
  let folder: Awaited<ReturnType<typeof scratchFolder>>;
  let mesh: RunningMesh;
  let gateway: string;

  before(async () => {
    folder = await scratchFolder("test/e2e/security");
    await copyFile(join(import.meta.dirname, "../../../samples/httpbin/httpbin.ts"), join(folder.path, "httpbin.ts"));
    mesh = await upMesh(folder.path);
    gateway = await mesh.address();
  });

  after(async () => {
    await mesh?.[Symbol.asyncDispose]();
    await folder?.[Symbol.asyncDispose]();
  });

  /** Writes the policies, and waits until every row is as it should be: all proxies have them then. */
  async function holds(policies: readonly object[], rows: readonly Row[]): Promise<void> {
    const text = policies.map((one) => JSON.stringify(one)).join("\n---\n");
    await writeFile(join(folder.path, ".policies"), text);
    await rename(join(folder.path, ".policies"), join(folder.path, "config/policies.yaml"));
    const end = performance.now() + 90_000;
    const wanted = rows.map(({ want }) => want);
    for (;;) {
      const got = await statuses(rows);
      if (isDeepStrictEqual(got, wanted)) return;
      const wrong = rows.flatMap((row, i) => (got[i] === row.want ? [] : [`${JSON.stringify(row)} got ${got[i]}`]));
      assert.ok(performance.now() < end, `after 90 s:\n${wrong.join("\n")}`);
    }
  }

  async function statuses(rows: readonly Row[]): Promise<readonly number[]> {
    const got = new Map<Row, number>();
    for (const [from, own] of Map.groupBy(rows, (row) => row.from)) {
      const script = own.map((row) => scriptOf(row, gateway)).join("\n");
      const stdout =
        from === "gateway"
          ? execFileSync("sh", ["-c", script], { encoding: "utf8" })
          : (await mesh.exec(from, ["bash", "-c", script])).stdout;
      const lines = stdout.trim().split("\n");
      for (const [i, row] of own.entries()) got.set(row, Number(lines[i]));
    }
    return rows.map((row) => got.get(row) ?? 0);
  }

  /** Until the proxy of a workload has written such a line about the calls; connections that are open may outlive a policy. */
  async function logged(workload: string, text: string, calls: readonly Row[]): Promise<void> {
    for (const end = performance.now() + 60_000; ; await new Promise((resolve) => setTimeout(resolve, 200))) {
      await statuses(calls);
      if ((await mesh.logs(workload, "proxy")).includes(text)) return;
      assert.ok(performance.now() < end, `no "${text}" in the log of ${workload}`);
    }
  }

  const from = (caller: Caller, call: Row["call"], want: number, more: Partial<Row> = {}): Row => ({
    from: caller,
    call,
    want,
    ...more,
  });

  test("authentication policy: who may send plain text", async () => {
    const strict = { mtls: { mode: "STRICT" } };
    const plainRefused = [from("sleep.foo", "/ip", 200), from("sleep.bar", "/ip", 200), from("sleep.legacy", "/ip", 0)];
    const plainServed = [from("sleep.foo", "/ip", 200), from("sleep.legacy", "/ip", 200)];
    await holds([], plainServed);
    await holds(
      [policy("PeerAuthentication", "istio-system/default", strict)],
      [...plainRefused, from("sleep.legacy", 9000, 0)],
    );
    await holds([policy("PeerAuthentication", "bar/default", strict)], plainServed);
    await holds([policy("PeerAuthentication", "foo/default", strict)], plainRefused);
    const permissive = policy("PeerAuthentication", "foo/httpbin", { ...ofHttpbin, mtls: { mode: "PERMISSIVE" } });
    await holds(
      [policy("PeerAuthentication", "foo/default", strict), permissive],
      [...plainServed, from("sleep.legacy", 9000, 0)],
    );
    const off = policy("PeerAuthentication", "foo/httpbin", {
      ...ofHttpbin,
      ...strict,
      portLevelMtls: { 8080: { mode: "DISABLE" } },
    });
    await holds([off], [from("sleep.legacy", "/ip", 200)]);
    // The port that no service names.
    await holds(
      [policy("PeerAuthentication", "foo/echo", { ...ofTcpEcho, portLevelMtls: { 9001: { mode: "STRICT" } } })],
      [from("sleep.legacy", 9000, 200), from("sleep.legacy", 9001, 0), from("sleep.foo", 9001, 200)],
    );
  });

  test("tokens: good, bad and missing ones, from every place", async () => {
    const rule = { issuer: "me", jwks: JWKS, audiences: ["web"] };
    const tokens = (more: object = {}) =>
      policy("RequestAuthentication", "foo/tokens", { ...ofHttpbin, jwtRules: [{ ...rule, ...more }] });
    const good = bearer({});
    const bad: readonly Row[] = [
      from("sleep.foo", "/ip", 401, { headers: { authorization: "Bearer deadbeef" } }),
      from("sleep.foo", "/ip", 401, { headers: bearer({ exp: now - HOUR }) }),
      from("sleep.foo", "/ip", 401, { headers: bearer({ iss: "stranger" }) }),
      from("sleep.foo", "/ip", 403, { headers: bearer({ aud: "other" }) }),
      from("sleep.foo", "/ip", 401, { headers: { authorization: `${good.authorization}x` } }),
    ];
    await holds([tokens()], [...bad, from("sleep.foo", "/ip", 200), from("sleep.foo", "/ip", 200, { headers: good })]);
    const needed = authorization("needs-token", {
      ...ofHttpbin,
      rules: [{ from: [{ source: { requestPrincipals: ["me/joe"] } }] }],
    });
    await holds(
      [tokens(), needed],
      [
        ...bad,
        from("sleep.foo", "/ip", 403),
        from("sleep.foo", "/ip", 403, { headers: bearer({ sub: "jim" }) }),
        from("sleep.foo", "/ip", 200, { headers: good }),
      ],
    );
    const places = {
      fromHeaders: [{ name: "x-jwt", prefix: "JWT " }],
      fromParams: ["token"],
      fromCookies: ["session"],
    };
    await holds(
      [tokens(places), needed],
      [
        from("sleep.foo", "/ip", 403, { headers: good }),
        from("sleep.foo", "/ip", 200, { headers: { "x-jwt": `JWT ${token({})}` } }),
        from("sleep.foo", `/ip?token=${token({})}`, 200),
        from("sleep.foo", "/ip?token=x", 401),
        from("sleep.foo", "/ip", 200, { headers: { cookie: `session=${token({})}` } }),
      ],
    );
    const claims = authorization("groups", {
      ...ofHttpbin,
      rules: [
        { when: [{ key: "request.auth.claims[groups]", values: ["group1"] }] },
        { when: [{ key: "request.auth.claims[scope]", values: ["read"] }] },
      ],
    });
    await holds(
      [tokens(), claims],
      [
        from("sleep.foo", "/ip", 200, { headers: bearer({ groups: ["group1", "group2"] }) }),
        from("sleep.foo", "/ip", 403, { headers: bearer({ groups: ["group2"] }) }),
        from("sleep.foo", "/ip", 200, { headers: bearer({ scope: "write read" }) }),
      ],
    );
    const nobody = policy("RequestAuthentication", "foo/tokens", {
      ...ofHttpbin,
      jwtRules: [{ issuer: "me", jwksUri: "http://127.0.0.1:1/keys" }],
    });
    await holds([nobody], [from("sleep.foo", "/ip", 401, { headers: good }), from("sleep.foo", "/ip", 200)]);
  });

  test("claims and tokens go on to the server as the rule says", async () => {
    const shown = async (more: object, want: readonly RegExp[], not: RegExp) => {
      const jwtRules = [{ issuer: "me", jwks: JWKS, ...more }];
      await holds(
        [policy("RequestAuthentication", "foo/tokens", { ...ofHttpbin, jwtRules })],
        [from("sleep.foo", "/ip", 401, { headers: bearer({ exp: 1 }) })],
      );
      const { authorization: value } = bearer({ nested: { role: "admin" }, groups: ["a", "b"] });
      for (const end = performance.now() + 90_000; ; ) {
        const { body } = await mesh.curl("sleep.foo", `${HTTPBIN}/headers`, ["-H", `authorization: ${value}`]);
        if (want.every((pattern) => pattern.test(body)) && !not.test(body)) return;
        assert.ok(performance.now() < end, body);
      }
    };
    const outputClaimToHeaders = [
      { header: "x-sub", claim: "sub" },
      { header: "x-role", claim: "nested.role" },
    ];
    await shown({ outputClaimToHeaders }, [/x-sub": ?"joe/i, /x-role": ?"admin/i], /bearer/i);
    const payload = /x-payload": ?"eyJ/i;
    await shown({ outputPayloadToHeader: "x-payload", forwardOriginalToken: true }, [payload, /bearer/i], /x-sub/i);
  });

  test("tokens at a gateway decide about routes", async () => {
    const spec = {
      selector: { matchLabels: { istio: "ingressgateway" } },
      jwtRules: [{ issuer: "me", jwks: JWKS, forwardOriginalToken: true }],
    };
    await holds(
      [policy("RequestAuthentication", "istio-system/tokens", spec)],
      [
        from("gateway", "/only-admins", 404),
        from("gateway", "/only-admins", 200, { headers: bearer({ groups: ["admin"] }) }),
        from("gateway", "/only-admins", 200, { headers: bearer({ groups: "admin" }) }),
        from("gateway", "/only-admins", 404, { headers: bearer({ groups: ["user"] }) }),
        from("gateway", "/only-admins", 401, { headers: bearer({ exp: 1 }) }),
      ],
    );
  });

  test("authorization over HTTP: nothing, then reading, then writing by one account", async () => {
    const nothing = authorization("allow-nothing", {});
    await holds([nothing], [from("sleep.foo", "/ip", 403), from("sleep.legacy", "/ip", 403)]);
    const read = authorization("read", { ...ofHttpbin, rules: [{ to: [{ operation: { methods: ["GET"] } }] }] });
    await holds(
      [nothing, read],
      [from("sleep.legacy", "/ip", 200), from("sleep.foo", "/status/200", 403, { method: "PUT" })],
    );
    const writers = authorization("write", {
      ...ofHttpbin,
      rules: [
        {
          from: [{ source: { principals: [principal("foo/sleep")] } }],
          to: [{ operation: { methods: ["PUT"], paths: ["/status/*"] } }],
        },
      ],
    });
    await holds(
      [nothing, read, writers],
      [
        from("sleep.foo", "/status/200", 200, { method: "PUT" }),
        from("sleep.foo", "/anything", 403, { method: "PUT" }),
        from("sleep.bar", "/status/200", 403, { method: "PUT" }),
        from("sleep.legacy", "/status/200", 403, { method: "PUT" }),
        from("sleep.bar", "/ip", 200),
      ],
    );
    const byNamespace = authorization("bar", {
      ...ofHttpbin,
      rules: [{ from: [{ source: { namespaces: ["bar"] } }], when: [{ key: "request.headers[x-a]", values: ["1"] }] }],
    });
    await holds(
      [byNamespace],
      [
        from("sleep.bar", "/ip", 200, { headers: { "x-a": "1" } }),
        from("sleep.bar", "/ip", 403, { headers: { "x-a": "2" } }),
        from("sleep.foo", "/ip", 403, { headers: { "x-a": "1" } }),
      ],
    );
  });

  test("explicit denial goes before what is allowed", async () => {
    const allow = authorization("allow", {
      ...ofHttpbin,
      rules: [{ to: [{ operation: { paths: ["/ip", "/headers"] } }] }],
    });
    const deny = authorization("deny", {
      ...ofHttpbin,
      action: "DENY",
      rules: [
        {
          to: [{ operation: { methods: ["GET"] } }],
          when: [{ key: "request.headers[x-token]", notValues: ["admin"] }],
        },
      ],
    });
    const admin = { headers: { "x-token": "admin" } };
    await holds(
      [allow, deny],
      [from("sleep.foo", "/ip", 403), from("sleep.foo", "/ip", 200, admin), from("sleep.foo", "/get", 403, admin)],
    );
    const dryRun = {
      ...deny,
      metadata: { name: "deny", namespace: "foo", annotations: { "istio.io/dry-run": "true" } },
    };
    await holds([allow, dryRun], [from("sleep.foo", "/ip", 200), from("sleep.foo", "/get", 403)]);
    // What it would have denied is counted.
    const { stdout } = await mesh.exec("httpbin.foo", ["curl", "-s", "localhost:15000/stats?filter=rbac"]);
    assert.match(stdout, /istio_dry_run_deny_\.?shadow_denied: [1-9]/);
  });

  test("the log of a denied request names the policy and the rule", async () => {
    const to = [{ operation: { paths: ["/get"] } }];
    const deny = { ...ofHttpbin, action: "DENY", rules: [{ to: [{ operation: { paths: ["/never"] } }] }, { to }] };
    const denied = { action: "DENY", rules: [{ to: [{ operation: { ports: ["9001"] } }] }] };
    const noPort = authorization("no-9001", { ...ofTcpEcho, ...denied });
    const [get, echo] = [from("sleep.foo", "/get", 403), from("sleep.foo", 9001, 0)];
    await holds([authorization("no-get", deny), noPort], [get, echo, from("sleep.foo", 9000, 200)]);
    await logged("httpbin.foo", "rbac_access_denied_matched_policy[ns[foo]-policy[no-get]-rule[1]]", [get]);
    await logged("tcp-echo.foo", "rbac_access_denied_matched_policy[ns[foo]-policy[no-9001]-rule[0]]", [echo]);
  });

  test("x authz knows what was applied to a mesh that is up", async () => {
    const deny = { ...ofHttpbin, action: "DENY", rules: [{ to: [{ operation: { methods: ["DELETE"] } }] }] };
    const applied = authorization("no-delete", deny);
    await holds([], [from("sleep.foo", "/anything", 200, { method: "DELETE" })]);
    await (await mesh.mesh()).apply(applied);
    const at = ["--state", mesh.stateFolder];
    const call = ["--from", "foo/sleep", "--to", "httpbin.foo:8080", "--method", "DELETE", "--path", "/anything"];
    const explained = await mizzen(["x", "authz", "explain", ...at, ...call]);
    assert.match(explained.stdout, /DENIED[\s\S]*AuthorizationPolicy\/foo\/no-delete/, explained.stderr);
    const { stdout } = await mizzen(["x", "authz", "check", ...at, "httpbin.foo"]);
    assert.match(stdout, /DENY +no-delete\.foo/);
    await holds([], [from("sleep.foo", "/anything", 403, { method: "DELETE" })]);
    const strict = policy("PeerAuthentication", "foo/strict", { mtls: { mode: "STRICT" } });
    await (await mesh.mesh()).apply(strict);
    const { stdout: matrix } = await mizzen(["x", "mtls", ...at]);
    assert.match(matrix, /sleep\.legacy.*X plain to STRICT/);
    await (await mesh.mesh()).delete([applied, strict]);
  });

  test("authorization over TCP", async () => {
    const ports = authorization("ports", {
      ...ofTcpEcho,
      rules: [{ to: [{ operation: { ports: ["9000", "9001"] } }] }],
    });
    await holds([ports], [from("sleep.foo", 9000, 200), from("sleep.foo", 9001, 200)]);
    const invalid = authorization("ports", {
      ...ofTcpEcho,
      rules: [{ to: [{ operation: { methods: ["GET"], ports: ["9000"] } }] }],
    });
    await holds([invalid], [from("sleep.foo", 9000, 0), from("sleep.foo", 9001, 0)]);
    const deny = authorization("ports", {
      ...ofTcpEcho,
      action: "DENY",
      rules: [{ to: [{ operation: { methods: ["GET"], ports: ["9000"] } }] }],
    });
    await holds([deny], [from("sleep.foo", 9000, 0), from("sleep.foo", 9001, 200)]);
    const one = authorization("account", {
      ...ofTcpEcho,
      rules: [{ from: [{ source: { serviceAccounts: ["bar/sleep"] } }] }],
    });
    await holds([one], [from("sleep.bar", 9000, 200), from("sleep.foo", 9000, 0), from("sleep.legacy", 9000, 0)]);
  });

  for (const provider of ["ask-http", "ask-grpc"]) {
    test(`external authorization by ${provider}`, async () => {
      const custom = authorization("custom", {
        ...ofHttpbin,
        action: "CUSTOM",
        provider: { name: provider },
        rules: [{ to: [{ operation: { paths: ["/headers"] } }] }],
      });
      const allow = { headers: { "x-ext-authz": "allow" } };
      await holds(
        [custom],
        [
          from("sleep.foo", "/headers", 403, { headers: { "x-ext-authz": "deny" } }),
          from("sleep.foo", "/headers", 200, allow),
          from("sleep.foo", "/headers", 403),
          from("sleep.foo", "/headers", 200, { method: "POST", body: "please let me in" }),
          from("sleep.foo", "/headers", 403, { method: "POST", body: "please" }),
          from("sleep.foo", "/ip", 200),
        ],
      );
      const deny = authorization("deny", {
        ...ofHttpbin,
        action: "DENY",
        rules: [{ to: [{ operation: { paths: ["/headers"] } }] }],
      });
      await holds([custom, deny], [from("sleep.foo", "/headers", 403, allow), from("sleep.foo", "/ip", 200)]);
    });
  }

  test("headers of an answer over HTTP go to the server and to the caller", async () => {
    const rules = [{ to: [{ operation: { paths: ["/headers"] } }] }];
    const provider = { name: "ask-http" };
    await holds(
      [authorization("custom", { ...ofHttpbin, action: "CUSTOM", provider, rules })],
      [from("sleep.foo", "/headers", 403), from("sleep.foo", "/headers", 200, { headers: { "x-ext-authz": "allow" } })],
    );
    const allowed = await mesh.curl("sleep.foo", `${HTTPBIN}/headers`, ["-H", "x-ext-authz: allow"]);
    assert.match(allowed.body, /"x-asked": ?"\/check\/headers asks"/i);
    assert.equal(allowed.headers["x-asked"], "/check/headers asks");
    const denied = await mesh.curl("sleep.foo", `${HTTPBIN}/headers`);
    assert.deepEqual([denied.status, denied.headers["x-asked"]], [403, "/check/headers asks"]);
  });

  for (const [provider, status] of [
    ["ask-nobody-http", 403],
    ["ask-nobody-grpc", 503],
    ["open-http", 200],
    ["open-grpc", 200],
  ] as const) {
    test(`a provider that cannot be reached: ${provider} means ${status}`, async () => {
      const rules = [{ to: [{ operation: { paths: ["/headers"] } }] }];
      await holds(
        [authorization("custom", { ...ofHttpbin, action: "CUSTOM", provider: { name: provider }, rules })],
        [from("sleep.foo", "/headers", status), from("sleep.foo", "/ip", 200)],
      );
    });
  }

  test("a provider that does not exist denies what would be asked about", async () => {
    const custom = authorization("custom", {
      ...ofHttpbin,
      action: "CUSTOM",
      provider: { name: "nobody" },
      rules: [{ to: [{ operation: { paths: ["/headers"] } }] }],
    });
    await holds(
      [custom],
      [from("sleep.foo", "/headers", 403, { headers: { "x-ext-authz": "allow" } }), from("sleep.foo", "/ip", 200)],
    );
  });

  test("ingress: addresses of clients, as far as proxies in front are trusted", async () => {
    const ofGateway = (source: object) =>
      policy("AuthorizationPolicy", "istio-system/ingress", {
        selector: { matchLabels: { istio: "ingressgateway" } },
        rules: [{ from: [{ source }] }],
      });
    const client = (forwarded: string, want: number) =>
      from("gateway", "/ip", want, { headers: { "x-forwarded-for": forwarded } });
    await holds(
      [ofGateway({ remoteIpBlocks: ["203.0.113.0/24"] })],
      [
        client("203.0.113.7", 200),
        client("198.51.100.7", 403),
        // Who writes more into the header than the trusted proxy gains nothing.
        client("203.0.113.7, 198.51.100.7", 403),
        client("198.51.100.7, 203.0.113.7", 200),
      ],
    );
    await holds(
      [ofGateway({ notRemoteIpBlocks: ["203.0.113.0/24"] })],
      [client("203.0.113.7", 403), client("198.51.100.7", 200)],
    );
    await holds([ofGateway({ ipBlocks: ["203.0.113.0/24"] })], [client("203.0.113.7", 403)]);
  });

  test("a trust domain that moved: policies with the old one, its alias and others", async () => {
    const allow = (name: string) =>
      authorization("allow", { ...ofHttpbin, rules: [{ from: [{ source: { principals: [name] } }] }] });
    const served = [from("sleep.foo", "/ip", 200), from("sleep.bar", "/ip", 403)];
    for (const domain of ["old.example", "new.example", "cluster.local"])
      await holds([allow(principal("foo/sleep", domain))], served);
    await holds([allow(principal("foo/sleep", "stranger.example"))], [from("sleep.foo", "/ip", 403)]);
  });
});

/** Prints the status of a call in one line. */
function scriptOf({ from: caller, call, method = "GET", headers = {}, body }: Row, gateway: string): string {
  if (typeof call === "number") {
    // Envoy looks at five bytes before it knows that this is no TLS.
    const ask = `exec 3<>/dev/tcp/tcp-echo.foo/${call} && echo world >&3 && head -c 11 <&3`;
    return `[ "$(timeout 3 bash -c '${ask}' 2>/dev/null)" = "hello world" ] && echo 200 || echo 0`;
  }
  const sent = Object.entries(headers).map(([name, value]) => `-H '${name}: ${value}'`);
  if (body !== undefined) sent.push(`--data '${body}'`);
  const url = `${caller === "gateway" ? gateway : HTTPBIN}${call}`;
  return `curl -s -o /dev/null -w '%{http_code}\\n' -m 10 -X ${method} ${sent.join(" ")} '${url}'`;
}
