import type { PushRecord } from "#model/push-record.ts";
import type { DebugState, PageRequest } from "./page.ts";
import { inScope } from "./scope.ts";

/**
 * The push journal: the last changes, oldest first, each with what was sent because of it. Change 0 stands for what was sent
 * without one, to proxies that connected before the first. `proxyID` and `change` select.
 */
export function pushes({ pushes: history }: DebugState, { scope, query }: PageRequest): object {
  const wanted = (push: PushRecord) =>
    inScope(scope, namespaceOf(push.node)) &&
    (query.proxyID === undefined || idOf(push.node) === query.proxyID) &&
    (query.change === undefined || String(push.change) === query.change);
  const byChange = Map.groupBy(history.pushes().filter(wanted), ({ change }) => change);
  const known = history.changes();
  const without = byChange.keys().filter((id) => !known.some((change) => change.id === id));
  const changes = [...without.map((id) => ({ id, objects: [], objectCount: 0 })), ...known];
  return {
    changes: changes
      .filter(({ id }) => query.change === undefined || String(id) === query.change)
      .map(({ objects, ...change }) => {
        const sent = byChange.get(change.id) ?? [];
        return {
          ...withDates(change),
          objects: objects.filter((object) => inScope(scope, object.split("/")[1] ?? "")),
          views: new Set(sent.map(({ type, view }) => `${type} ${view}`)).size,
          proxies: new Set(sent.map(({ node }) => node)).size,
          bytes: sent.reduce((sum, { bytes }) => sum + bytes, 0),
          pushes: sent.map(({ change: _, answeredAfter, ...push }) => ({
            ...withDates(push),
            ...(answeredAfter !== undefined && { answeredAfterMs: Math.round(answeredAfter) }),
          })),
        };
      }),
  };
}

/** Times as people and programs read them. */
function withDates(fields: object): object {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, TIMES.has(name) ? new Date(value).toISOString() : value]),
  );
}

const TIMES: ReadonlySet<string> = new Set(["at", "changedAt", "releasedAt"]);

/** `httpbin-1.default` of `sidecar~10.0.0.1~httpbin-1.default~default.svc.cluster.local` */
function idOf(node: string): string {
  return node.split("~")[2] ?? "";
}

function namespaceOf(node: string): string {
  const id = idOf(node);
  return id.slice(id.lastIndexOf(".") + 1);
}
