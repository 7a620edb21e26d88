/** Requests, callers and tokens at random. */
import { createHmac } from "node:crypto";
import fc from "fast-check";

const id = (rest: string) => `spiffe://cluster.local/ns/${rest}`;
export const IDENTITIES: readonly string[] = [
  ...["default/sa/web", "default/sa/a.b", "default/sa/aXb", "default/sa/api", "default/sa/a+b"].map(id),
  ...["prod/sa/api", "prod/sa/web", "de.ault/sa/web", "deXault/sa/web", "kube-system/sa/web", "other/sa/web"].map(id),
  ...["prod/sa/web/extra", "prod/x/sa/api", "prod/sa/ns/default/sa/web"].map(id),
  "spiffe://old.example/ns/default/sa/web",
  "spiffe://old.example/ns/prod/sa/api",
  "spiffe://other/ns/default/sa/web",
  "spiffe://cluster.local/workload/web",
  "spiffe://cluster.local.example/ns/default/sa/web",
  "https://cluster.local/ns/default/sa/web",
];
/** The mesh's own, then its aliases. */
export const TRUST_DOMAINS = ["cluster.local", "old.example"] as const;
export const METHODS: readonly string[] = ["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];
export const HOSTS: readonly string[] = [
  ...["example.com", "Example.COM", "a.b.example.com", "example.com:8080", "other.org", "EXAMPLE.com:80", "a.b"],
  ...["example.com.", "[::1]:80", "127.0.0.1"],
];
export const HEADERS: readonly string[] = ["x-a", "x-b", "User-Agent"];
export const PATHS: readonly string[] = [
  ...["/", "/admin", "/admin/", "/Admin", "/admin/x", "/a/b", "/a/b/x", "/a//x", "/a/../admin", "//admin", "/a/", "/a"],
  ...["/admin%2Fx", "/admin%2fx", "/%61dmin", "/a/%2e%2e/admin", "/admin;x", "/admin?x=/y", "/x\\admin", "/a/./b"],
  ...["/admin/..", "/..%2fadmin", "/a/b?#x", "/a%5Cb", "/admin/.", "/a/%2E./admin", "/a///b//x", "/a%00b", "/%zz"],
  ...[
    "/a*b",
    '/a/"<x>',
    "/a/b^`{|}",
    "/a/[b]",
    "/a/b/c/d/x",
    "/.",
    "/..",
    "/../..//admin",
    "/a%252fb",
    "/admin%20",
    "/a/*",
  ],
  ...["/x?a=b&c=../d", "/a/b/%2f/x", "/ad%6din", "/%41dmin", "/admin%3Fx", "/a+b", "/a,b;c=1", "/~a", "/a%7Eb", "/é"],
];

const SECRET = Buffer.from("a shared secret that is long enough for HS256").toString("base64url");
/** The keys that tokens are checked by. */
export const JWKS = JSON.stringify({ keys: [{ kty: "oct", alg: "HS256", k: SECRET }] });

const claims = fc.record(
  {
    iss: fc.constantFrom("me", "https://me/a", "stranger"),
    sub: fc.constantFrom("joe", "jim", "", "a/joe"),
    aud: fc.constantFrom<unknown>("web", ["api", "web"], "other", []),
    azp: fc.constantFrom<unknown>("me", "you", ["me"]),
    groups: fc.constantFrom<unknown>(["admin", "user"], "admin", "", [], [5, "admin"]),
    nested: fc.constantFrom<unknown>({ a: "x" }, { a: ["y"] }, { a: { b: 1 } }, "x", { "a][b": "x" }, []),
    scope: fc.constantFrom("read write", "read", "", " write  read "),
    number: fc.constantFrom<unknown>(5, true, null),
    exp: fc.constantFrom(3_600, 3_600, 3_600, -3_600).map((from) => Math.round(Date.now() / 1000) + from),
  },
  { requiredKeys: ["iss", "sub"] },
);

/** Who calls: connections are kept, so that one caller makes several requests. */
export const caller = fc.record({
  identity: fc.constantFrom(...IDENTITIES, undefined),
  sourceIp: fc.constantFrom("127.0.0.1", "127.0.0.2", "127.0.0.3"),
  sni: fc.constantFrom("example.com", "outbound_.80_._.web.example.com", "Example.com", undefined),
});

/** What is asked for. */
export const request = fc.record(
  {
    method: fc.constantFrom(...METHODS),
    host: fc.constantFrom(...HOSTS),
    path: fc.constantFrom(...PATHS),
    headers: fc.record(
      {
        "x-a": fc.constantFrom<string | string[]>("1", "2", ["1", "2"], "", "1,2", "a b", ["", "1"]),
        "x-b": fc.constantFrom<string | string[]>("A", "a", ["2", "2"]),
        "user-agent": fc.constantFrom("1", "a"),
        "x-forwarded-for": fc.constantFrom(
          ...["203.0.113.7", "10.1.1.1, 203.0.113.9", "10.1.1.1", "::ffff:10.0.0.1", "2001:db8::1", "nowhere", ""],
        ),
      },
      { requiredKeys: [] },
    ),
    claims: fc.oneof(claims, fc.constant(undefined)),
    forged: fc.constantFrom(false, false, false, false, false, true),
  },
  { requiredKeys: ["path"] },
);
export type RandomCaller = typeof caller extends fc.Arbitrary<infer Value> ? Value : never;
export type RandomRequest = typeof request extends fc.Arbitrary<infer Value> ? Value : never;

/** A token with these claims, by a key that is trusted or not. */
export function signed(payload: object, forged = false): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const text = `${part({ alg: "HS256" })}.${part(payload)}`;
  const key = Buffer.from(forged ? "somebody else's secret, also long enough" : SECRET, forged ? "utf8" : "base64url");
  return `${text}.${createHmac("sha256", key).update(text).digest("base64url")}`;
}
