import assert from "node:assert/strict";
import { test } from "node:test";
import { parseScrapeTarget } from "./scrape-target.ts";

const target = (json: string) => parseScrapeTarget(json, 15020).target;

test("parseScrapeTarget() has Prometheus' defaults", () => {
  assert.deepEqual(target("{}"), { port: 80, path: "/metrics", https: false });
  assert.deepEqual(target("null"), { port: 80, path: "/metrics", https: false });
  assert.deepEqual(target('{"path":"","port":""}'), { port: 80, path: "/metrics", https: false });
  assert.deepEqual(target('{"scrape":"true","path":"/m?a=b","port":"9090"}'), {
    port: 9090,
    path: "/m?a=b",
    https: false,
  });
  assert.deepEqual(target('{"path":"m","interval":30}'), { port: 80, path: "/m", https: false });
  assert.deepEqual(target('{"Path":"m","scheme":"https"}'), { port: 80, path: "/m", https: true });
  assert.equal(target('{"scrape":"false","port":"15020"}'), undefined);
});

test("parseScrapeTarget() leaves out what cannot be scraped, and says why", () => {
  for (const port of ["http", "0", "65536", "-1", "8e1", " 80"])
    assert.deepEqual(parseScrapeTarget(JSON.stringify({ port }), 15020), {
      problem: `prometheus.io/port must be a port from 1 to 65535, not "${port}"`,
    });
  assert.deepEqual(parseScrapeTarget('{"scheme":"ftp"}', 15020), {
    problem: 'prometheus.io/scheme must be http or https, not "ftp"',
  });
});

test("parseScrapeTarget() refuses what cannot be read, and to scrape itself", () => {
  for (const json of ["", "{", "[]", '"x"', "7", '{"port":9090}', '{"scrape":false}', '{"path":["/"]}'])
    assert.throws(
      () => parseScrapeTarget(json, 15020),
      /^MeshError: failed to unmarshal ISTIO_PROMETHEUS_ANNOTATIONS: /,
      json,
    );
  assert.throws(
    () => parseScrapeTarget('{"port":"15020"}', 15020),
    /application port is the same as agent port, which may lead to a recursive loop\. Ensure pod does not have prometheus\.io\/port=15020 label/,
  );
});
