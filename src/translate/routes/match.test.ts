import assert from "node:assert/strict";
import { test } from "node:test";
import type { HttpMatch } from "#config/kinds/virtual-service/schema.ts";
import { canBeMet, claimPath, pathInTrace, routeMatch, takesEveryRequest } from "./match.ts";

test("without a condition every path is taken", () => {
  assert.deepEqual(routeMatch(undefined), { pathSpecifier: { case: "prefix", value: "/" } });
  assert.deepEqual(routeMatch({}).pathSpecifier, { case: "prefix", value: "/" });
});

test("headers are matched in order of their names, then what the request line says", () => {
  const { headers } = routeMatch({
    headers: { b: { exact: "1" }, a: { prefix: "x" } },
    withoutHeaders: { c: { exact: "2" } },
    method: { exact: "GET" },
    authority: { regex: ".*" },
  });
  assert.deepEqual(
    headers?.map(({ name }) => name),
    ["a", "b", "c", ":method", ":authority"],
  );
});

test("what looks like a header of claims is asked of the token that was checked", () => {
  const { headers, dynamicMetadata } = routeMatch({
    headers: { "@request.auth.claims.group": { exact: "admin" }, a: { exact: "1" } },
    withoutHeaders: { "@request.auth.claims[a.b]": {} },
  });
  assert.deepEqual(
    headers?.map(({ name }) => name),
    ["a"],
  );
  const paths = dynamicMetadata?.map(({ path = [], invert }) => [path.map(({ segment }) => segment?.value), invert]);
  assert.deepEqual(paths, [
    [["payload", "group"], false],
    [["payload", "a.b"], true],
  ]);
});

test("claimPath() reads both ways to write claims inside one another", () => {
  assert.deepEqual(claimPath("@request.auth.claims.a.b"), ["a", "b"]);
  assert.deepEqual(claimPath("@Request.Auth.Claims[a.b][c]"), ["a.b", "c"]);
  for (const header of [
    "@request.auth.claims",
    "@request.auth.claims.",
    "@request.auth.claims[]",
    "x",
    "@request.auth",
  ])
    assert.equal(claimPath(header), undefined, header);
});

test("no value asks whether a header is there", () => {
  for (const value of [{}, { regex: "*" }]) {
    const [header] = routeMatch({ headers: { x: value } }).headers ?? [];
    assert.deepEqual(header, { name: "x", headerMatchSpecifier: { case: "presentMatch", value: true } });
    const [parameter] = routeMatch({ queryParams: { x: value } }).queryParameters ?? [];
    assert.equal(parameter?.queryParameterMatchSpecifier?.case, "presentMatch");
  }
});

test("a header that is missing does not have the value that is unwanted", () => {
  const [header] = routeMatch({ withoutHeaders: { x: { exact: "1" } } }).headers ?? [];
  assert.equal(header?.invertMatch, true);
  assert.equal(header?.treatMissingHeaderAsEmpty, true);
  const [absent] = routeMatch({ withoutHeaders: { x: {} } }).headers ?? [];
  assert.equal(absent?.invertMatch, true);
  assert.equal(absent?.treatMissingHeaderAsEmpty, undefined);
});

test("takesEveryRequest() holds for any path and nothing else", () => {
  const every: HttpMatch[] = [{}, { uri: { prefix: "/" } }, { uri: { regex: ".*" } }, { port: 80 }, { uri: {} }];
  for (const match of every) assert.equal(takesEveryRequest(match), true, JSON.stringify(match));
  const some: HttpMatch[] = [
    { uri: { prefix: "/a" } },
    { uri: { exact: "/" } },
    { headers: { a: {} } },
    { withoutHeaders: { a: {} } },
    { queryParams: { a: {} } },
    { method: { exact: "GET" } },
    { authority: { exact: "a" } },
    { scheme: { exact: "http" } },
  ];
  for (const match of some) assert.equal(takesEveryRequest(match), false, JSON.stringify(match));
  assert.equal(takesEveryRequest(undefined), true);
});

test("a parameter that no request can have makes a condition that none meets", () => {
  assert.equal(canBeMet({ queryParams: { a: {} } }), true);
  assert.equal(canBeMet({ queryParams: { "": {} } }), false);
  assert.equal(canBeMet({ queryParams: { ["q".repeat(1025)]: {} } }), false);
});

test("a trace is named by the path", () => {
  assert.equal(pathInTrace({ uri: { exact: "/a" } }), "/a");
  assert.equal(pathInTrace({ uri: { prefix: "/a" } }), "/a*");
  assert.equal(pathInTrace({ uri: { regex: "/a.*" } }), "/a.*");
  assert.equal(pathInTrace(undefined), "/*");
});

test("a prefix of an Ingress ends at a slash, where Envoy can tell", () => {
  const path = (prefix: string) => routeMatch({ uri: { prefix } }, "parts").pathSpecifier;
  assert.deepEqual(path("/a"), { case: "pathSeparatedPrefix", value: "/a" });
  assert.deepEqual(path("/a/b//"), { case: "pathSeparatedPrefix", value: "/a/b" });
  for (const plain of ["/", "//", "/a?b"]) assert.deepEqual(path(plain), { case: "prefix", value: plain });
  assert.deepEqual(routeMatch({ uri: { exact: "/a/" } }, "parts").pathSpecifier, { case: "path", value: "/a/" });
  assert.equal(pathInTrace({ uri: { prefix: "/a" } }, "parts"), "/*");
});
