/** Settings of filters for one route: faults and cross-origin requests. */
import type { CorsPolicy, HttpFault, HttpRoute, Percent } from "#config/kinds/virtual-service/schema.ts";
import type { FaultDelaySchema } from "#gen/envoy/extensions/filters/common/fault/v3/fault_pb.ts";
import { CorsPolicySchema } from "#gen/envoy/extensions/filters/http/cors/v3/cors_pb.ts";
import { type FaultAbortSchema, HTTPFaultSchema } from "#gen/envoy/extensions/filters/http/fault/v3/fault_pb.ts";
import {
  FractionalPercent_DenominatorType as Denominator,
  type FractionalPercentSchema,
} from "#gen/envoy/type/v3/percent_pb.ts";
import type { VersionedField } from "../traits/capabilities.ts";
import { duration, type Init, pack } from "../wire/encode.ts";
import { stringMatcher } from "./match.ts";

type Fraction = Init<typeof FractionalPercentSchema>;

/** Settings by filter name. */
export function filterSettings(
  { fault, corsPolicy: cors }: Pick<HttpRoute, "fault" | "corsPolicy">,
  lackedFields: readonly VersionedField[],
) {
  const knowsPreflights = !lackedFields.includes("CorsPolicy.forward_not_matching_preflights");
  const injected = fault === undefined ? undefined : faultOf(fault);
  return {
    ...(injected && { "envoy.filters.http.fault": pack(HTTPFaultSchema, injected) }),
    ...(cors && { "envoy.filters.http.cors": pack(CorsPolicySchema, corsOf(cors, knowsPreflights)) }),
  };
}

/** Percent with four places, as a share of a million. */
export function fraction({ value = 0 }: Percent): Fraction {
  return { numerator: Math.trunc(value * 10_000), denominator: Denominator.MILLION };
}

/** Whole percent. */
export function wholePercent(numerator: number): Fraction {
  return { numerator, denominator: Denominator.HUNDRED };
}

function faultOf({ delay, abort }: HttpFault): Init<typeof HTTPFaultSchema> | undefined {
  const injected = {
    ...(delay?.fixedDelay !== undefined && { delay: delayOf(delay, delay.fixedDelay) }),
    ...(abort !== undefined && abortOf(abort)),
  };
  return Object.keys(injected).length === 0 ? undefined : injected;
}

function delayOf(delay: NonNullable<HttpFault["delay"]>, fixedDelay: number): Init<typeof FaultDelaySchema> {
  return {
    percentage: delay.percentage === undefined ? wholePercent(delay.percent ?? 0) : fraction(delay.percentage),
    faultDelaySecifier: { case: "fixedDelay", value: duration(fixedDelay) },
  };
}

/** Codes of gRPC by name, in the order of their numbers. */
const GRPC_CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
];

/** Envoy takes status codes from 200 to 599 only. */
function abortOf({ httpStatus, grpcStatus, percentage }: NonNullable<HttpFault["abort"]>): {
  abort?: Init<typeof FaultAbortSchema>;
} {
  const share = percentage === undefined ? {} : { percentage: fraction(percentage) };
  if (grpcStatus !== undefined) {
    const value = GRPC_CODES.indexOf(grpcStatus);
    return value === -1 ? {} : { abort: { ...share, errorType: { case: "grpcStatus", value } } };
  }
  if (httpStatus === undefined || httpStatus < 200 || httpStatus > 599) return {};
  return { abort: { ...share, errorType: { case: "httpStatus", value: httpStatus } } };
}

function corsOf(cors: CorsPolicy, knowsPreflights: boolean): Init<typeof CorsPolicySchema> {
  const exact = (cors.allowOrigin ?? []).map((value) => ({ exact: value }));
  return {
    allowOriginStringMatch: (cors.allowOrigins ?? exact).map(stringMatcher),
    allowMethods: (cors.allowMethods ?? []).join(","),
    allowHeaders: (cors.allowHeaders ?? []).join(","),
    exposeHeaders: (cors.exposeHeaders ?? []).join(","),
    ...(cors.maxAge !== undefined && { maxAge: String(Math.trunc(cors.maxAge / 1000)) }),
    ...(cors.allowCredentials !== undefined && { allowCredentials: cors.allowCredentials }),
    filterEnabled: { defaultValue: wholePercent(100) },
    ...(knowsPreflights && { forwardNotMatchingPreflights: cors.unmatchedPreflights !== "IGNORE" }),
  };
}
