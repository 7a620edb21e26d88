/** What every page has in common. */
import type { Conflict } from "#explain/conflicts/conflict.ts";
import type { AuthorityStatus, ConnectedProxy, Source } from "#model/ports.ts";
import type { PushHistory } from "#model/push-record.ts";
import { inScope, type Scope } from "./scope.ts";

/** What the pages look at. */
export interface DebugState {
  readonly source: Pick<Source, "current" | "objects">;
  readonly connections: () => readonly ConnectedProxy[];
  readonly pushes: PushHistory;
  /** Looks for something to send to every proxy. */
  readonly push?: () => void;
  /** What objects claim of one another. */
  readonly conflicts?: () => readonly Conflict[];
  /** Templates of injection by name. */
  readonly templates?: () => Readonly<Record<string, string>>;
  /** Further clusters of the mesh; without Kubernetes there is none. */
  readonly remoteClusters?: () => readonly { readonly id: string; readonly secret: string; readonly status: string }[];
  /** Whether the newest state was sent to all proxies. */
  readonly hasSentAll?: () => boolean;
  /** What the xDS server holds for proxies. */
  readonly held: () => { readonly parts: number; readonly resources: number };
  /** Undefined while there is no certificate authority. */
  readonly authority?: () => AuthorityStatus | undefined;
}

/** Who asks for what. */
export interface PageRequest {
  readonly scope: Scope;
  readonly query: Readonly<Record<string, string | undefined>>;
}

export interface DebugPage {
  readonly path: string;
  readonly help: string;
  /** The content as JSON, or plain text; throws `PageRefusal` when there is none. */
  readonly content: (state: DebugState, request: PageRequest) => unknown;
}

/** A page that cannot be shown, and why. */
export class PageRefusal extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.name = "PageRefusal";
    this.status = status;
  }
}

/** The proxies that may be looked at. */
export function visibleProxies({ connections }: DebugState, { scope }: PageRequest): readonly ConnectedProxy[] {
  return connections().filter(({ proxy }) => inScope(scope, proxy.namespace));
}

/** The proxy that is asked about, by its id (`httpbin-1.default`), node id or connection. */
export function askedProxy(state: DebugState, request: PageRequest): ConnectedProxy {
  const id = request.query.proxyID ?? "";
  if (id === "") throw new PageRefusal(400, "You must provide a proxyID in the query string");
  const isMeant = ({ proxy, nodeId, connectionId }: ConnectedProxy) => [proxy.id, nodeId, connectionId].includes(id);
  const found = visibleProxies(state, request).findLast(isMeant);
  if (found === undefined) throw new PageRefusal(404, `Proxy not connected to this control plane: "${id}"`);
  return found;
}
