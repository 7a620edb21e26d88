import assert from "node:assert/strict";
import { test } from "node:test";
import { STATUS, statusHeaders, statusName, statusOfHeaders, statusOfHttp, statusOfReset } from "./status.ts";

test("a status survives its way through headers, whatever its text", () => {
  for (const details of ["", "plain text", "100% Ünïcode\nwith a second line", "%41", "\u{1f600}"]) {
    const headers = statusHeaders({ code: STATUS.INTERNAL, details });
    assert.match(headers["grpc-message"] ?? "", /^[ -~]*$/);
    assert.deepEqual(statusOfHeaders(headers), { code: STATUS.INTERNAL, details });
  }
  assert.match(statusHeaders({ code: 2, details: "lone \ud800" })["grpc-message"] ?? "", /^lone %/);
});

test("statusOfHeaders() takes what others send", () => {
  assert.equal(statusOfHeaders({}), undefined);
  assert.deepEqual(statusOfHeaders({ "grpc-status": "5" }), { code: STATUS.NOT_FOUND, details: "" });
  assert.deepEqual(statusOfHeaders({ "grpc-status": "5", "grpc-message": "50% off" }), {
    code: STATUS.NOT_FOUND,
    details: "50% off",
  });
  assert.equal(statusOfHeaders({ "grpc-status": "many" })?.code, STATUS.UNKNOWN);
});

test("what is no status of gRPC becomes one", () => {
  assert.deepEqual(
    [401, 404, 503, 418].map((code) => statusName(statusOfHttp(code).code)),
    ["UNAUTHENTICATED", "UNIMPLEMENTED", "UNAVAILABLE", "UNKNOWN"],
  );
  assert.deepEqual(
    [0, 2, 7, 8, 11].map((code) => statusName(statusOfReset(code).code)),
    ["INTERNAL", "INTERNAL", "UNAVAILABLE", "CANCELLED", "RESOURCE_EXHAUSTED"],
  );
  assert.equal(statusName(99), "99");
});
