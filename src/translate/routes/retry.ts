/** Retries of requests. */
import { STATUS_CODES } from "node:http";
import type { HttpRetry } from "#config/kinds/virtual-service/schema.ts";
import type { RetryPolicySchema } from "#gen/envoy/config/route/v3/route_components_pb.ts";
import { PreviousHostsPredicateSchema } from "#gen/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb.ts";
import { PreviousPrioritiesConfigSchema } from "#gen/envoy/extensions/retry/priority/previous_priorities/v3/previous_priorities_config_pb.ts";
import { duration, type Init, pack } from "../wire/encode.ts";

type RetryPolicy = Init<typeof RetryPolicySchema>;

const DEFAULT_CONDITIONS = "connect-failure,refused-stream,unavailable,cancelled,retriable-status-codes";

/** A retry goes to another endpoint than the one that failed. */
const OTHER_HOSTS = [
  {
    name: "envoy.retry_host_predicates.previous_hosts",
    configType: { case: "typedConfig" as const, value: pack(PreviousHostsPredicateSchema, {}) },
  },
];
const OTHER_LOCALITIES = {
  name: "envoy.retry_priorities.previous_priorities",
  configType: { case: "typedConfig" as const, value: pack(PreviousPrioritiesConfigSchema, { updateFrequency: 2 }) },
};

/** Two retries where nobody says, none where zero are asked for. Hashing chose the endpoint, so it stays the same then. */
export function retryPolicy(retries: HttpRetry | undefined, isHashed: boolean): RetryPolicy | undefined {
  if (retries === undefined) return basicPolicy(2, !isHashed);
  const { attempts = 0, perTryTimeout, retryOn, backoff } = retries;
  if (attempts <= 0) return undefined;
  return {
    ...basicPolicy(attempts, retries.retryIgnorePreviousHosts ?? !isHashed),
    ...(retryOn && conditions(retryOn)),
    ...(perTryTimeout !== undefined && { perTryTimeout: duration(perTryTimeout) }),
    ...(retries.retryRemoteLocalities === true && { retryPriority: OTHER_LOCALITIES }),
    ...(backoff !== undefined && { retryBackOff: { baseInterval: duration(backoff) } }),
  };
}

function basicPolicy(attempts: number, avoidsFailed: boolean): RetryPolicy {
  return {
    retryOn: DEFAULT_CONDITIONS,
    numRetries: attempts,
    hostSelectionRetryMaxAttempts: 5n,
    ...(avoidsFailed && { retryHostPredicate: OTHER_HOSTS }),
  };
}

/** Conditions by name, and status codes among them by number. */
function conditions(retryOn: string): RetryPolicy {
  const all = retryOn.split(",").map((part) => part.trim());
  const isCode = (part: string) => /^\d+$/.test(part) && STATUS_CODES[part] !== undefined;
  const names = all.filter((part) => part !== "" && !isCode(part));
  const retriableStatusCodes = all.filter(isCode).map(Number);
  const isImplied = retriableStatusCodes.length > 0 && !names.join(",").includes("retriable-status-codes");
  const joined = names.join(",");
  return { retryOn: isImplied ? `${joined},retriable-status-codes` : joined, retriableStatusCodes };
}
