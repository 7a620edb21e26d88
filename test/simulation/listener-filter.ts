/** Whether a listener filter looks at connections to a port. */
import type { ListenerFilterChainMatchPredicate } from "#gen/envoy/config/listener/v3/listener_components_pb.ts";
import type { Listener } from "#gen/envoy/config/listener/v3/listener_pb.ts";

/** Whether the listener has the filter, and it is not turned off for the port. */
export function runsOnPort({ listenerFilters }: Listener, name: string, port: number): boolean {
  const filter = listenerFilters.find((one) => one.name === name);
  return filter !== undefined && (filter.filterDisabled === undefined || !holds(filter.filterDisabled, port));
}

function holds({ rule }: ListenerFilterChainMatchPredicate, port: number): boolean {
  switch (rule.case) {
    case "destinationPortRange":
      return port >= rule.value.start && port < rule.value.end;
    case "orMatch":
      return rule.value.rules.some((one) => holds(one, port));
    case "andMatch":
      return rule.value.rules.every((one) => holds(one, port));
    case "notMatch":
      return !holds(rule.value, port);
    case "anyMatch":
      return rule.value;
    default:
      return false;
  }
}
