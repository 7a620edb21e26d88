import assert from "node:assert/strict";
import { test } from "node:test";
import type { CorsPolicy, HttpFault } from "#config/kinds/virtual-service/schema.ts";
import { CorsPolicySchema } from "#gen/envoy/extensions/filters/http/cors/v3/cors_pb.ts";
import { HTTPFaultSchema } from "#gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts";
import { unpacked } from "../../../test/support/translated.ts";
import { filterSettings, fraction } from "./per-filter.ts";

const faultOf = (fault: HttpFault) => {
  const packed = filterSettings({ fault }, [])["envoy.filters.http.fault"];
  return packed && unpacked(HTTPFaultSchema, packed);
};
const corsOf = (cors: CorsPolicy) =>
  unpacked(CorsPolicySchema, filterSettings({ corsPolicy: cors }, [])["envoy.filters.http.cors"]);

test("nothing is set where the route says nothing", () => {
  assert.deepEqual(filterSettings({}, []), {});
  assert.deepEqual(filterSettings({ fault: {} }, []), {});
  assert.deepEqual(filterSettings({ fault: { abort: {}, delay: {} } }, []), {});
});

test("shares have four places", () => {
  assert.equal(fraction({ value: 33.3333 }).numerator, 333_333);
  assert.equal(fraction({ value: 0.00001 }).numerator, 0);
  assert.equal(fraction({}).numerator, 0);
});

test("a status that Envoy does not take is not injected", () => {
  assert.equal(faultOf({ abort: { httpStatus: 503 } })?.abort?.errorType.value, 503);
  for (const httpStatus of [100, 600, 0]) assert.equal(faultOf({ abort: { httpStatus } }), undefined);
});

test("codes of gRPC are known by name", () => {
  assert.equal(faultOf({ abort: { grpcStatus: "UNAVAILABLE" } })?.abort?.errorType.value, 14);
  assert.equal(faultOf({ abort: { grpcStatus: "SURPRISE" } }), undefined);
});

test("a delay is for a share of the requests", () => {
  const delay = faultOf({ delay: { fixedDelay: 1500, percentage: { value: 50 } } })?.delay;
  assert.equal(delay?.percentage?.numerator, 500_000);
  assert.deepEqual(delay?.faultDelaySecifier.case, "fixedDelay");
});

test("questions that do not fit a CORS policy are passed on, unless they are to be ignored", () => {
  assert.equal(corsOf({}).forwardNotMatchingPreflights, true);
  assert.equal(corsOf({ unmatchedPreflights: "IGNORE" }).forwardNotMatchingPreflights, false);
});

test("a CORS policy lists what it allows", () => {
  const cors = corsOf({ allowOrigin: ["http://a"], allowMethods: ["GET", "POST"], maxAge: 90_000 });
  assert.equal(cors.allowMethods, "GET,POST");
  assert.equal(cors.maxAge, "90");
  assert.deepEqual(cors.allowOriginStringMatch[0]?.matchPattern, { case: "exact", value: "http://a" });
});
