import type { ConsistentHash } from "#config/kinds/destination-rule/schema.ts";
import type { RouteAction_HashPolicySchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { duration, type Init } from "../wire/encode.ts";
import { isHeaderText } from "../wire/header-text.ts";

/** What of a request decides its endpoint, where a rule balances by hash. */
export function hashPolicy(hash: ConsistentHash | undefined): Init<typeof RouteAction_HashPolicySchema> | undefined {
  if (hash?.httpHeaderName !== undefined) {
    const headerName = hash.httpHeaderName;
    if (headerName === "" || !isHeaderText(headerName)) return undefined;
    return { policySpecifier: { case: "header", value: { headerName } } };
  }
  if (hash?.httpCookie !== undefined) {
    const { name, path = "", ttl, attributes = [] } = hash.httpCookie;
    const value = {
      name,
      path,
      ...(ttl !== undefined && { ttl: duration(ttl) }),
      attributes: attributes.map((attribute) => ({ name: attribute.name, value: attribute.value ?? "" })),
    };
    return { policySpecifier: { case: "cookie", value } };
  }
  if (hash?.useSourceIp !== undefined) {
    return { policySpecifier: { case: "connectionProperties", value: { sourceIp: hash.useSourceIp } } };
  }
  if (!hash?.httpQueryParameterName) return undefined;
  return { policySpecifier: { case: "queryParameter", value: { name: hash.httpQueryParameterName } } };
}
