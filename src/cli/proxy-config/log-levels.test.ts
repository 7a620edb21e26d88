import assert from "node:assert/strict";
import { test } from "node:test";
import { levelQueries } from "./log-levels.ts";

const PAGE = "active loggers:\n  http: warning\n  redis: warning\n";

test("levelQueries() sets all loggers first, then those that are named", () => {
  assert.deepEqual(levelQueries("warn", PAGE), { queries: ["level=warning"] });
  assert.deepEqual(levelQueries("http:debug,redis=trace", PAGE), { queries: ["http=debug", "redis=trace"] });
  assert.deepEqual(levelQueries("http:debug,level:info", PAGE), { queries: ["level=info", "http=debug"] });
  assert.deepEqual(levelQueries("ns::http:debug", PAGE), { queries: ["http=debug"] });
  assert.deepEqual(levelQueries("http:debug,off", PAGE), { queries: ["level=off"] });
});

test("levelQueries() names what it does not know", () => {
  assert.deepEqual(levelQueries("loud", PAGE), { wrong: "unrecognized logging level: loud" });
  assert.deepEqual(levelQueries("grpc:debug", PAGE), { wrong: "unrecognized logger name: grpc" });
  assert.deepEqual(levelQueries("http:", PAGE), { wrong: "unrecognized logging level: " });
});
