import type { ConnectedProxy, Source } from "#model/ports.ts";
import { configz } from "./configz.ts";
import { endpointz } from "./endpointz.ts";
import { registryz } from "./registryz.ts";
import type { Scope } from "./scope.ts";
import { syncz } from "./syncz.ts";

/** What the pages look at. */
export interface DebugState {
  readonly source: Pick<Source, "current" | "objects">;
  readonly connections: () => readonly ConnectedProxy[];
}

export interface DebugPage {
  readonly path: string;
  readonly help: string;
  readonly content: (state: DebugState, scope: Scope) => unknown;
}

/** Pages under Istio's names, in the order of the index. */
export const DEBUG_PAGES: readonly DebugPage[] = [
  {
    path: "/debug/configz",
    help: "Objects of the configuration as last accepted",
    content: ({ source }, scope) => configz(source.objects(), scope),
  },
  {
    path: "/debug/endpointShardz",
    help: "Endpoints by service and registry",
    content: ({ source }, scope) => endpointz(source.current(), scope),
  },
  {
    path: "/debug/endpointz",
    help: "The same under its older name",
    content: ({ source }, scope) => endpointz(source.current(), scope),
  },
  {
    path: "/debug/registryz",
    help: "Services known to the control plane",
    content: ({ source }, scope) => registryz(source.current(), scope),
  },
  {
    path: "/debug/syncz",
    help: "What each connected proxy was sent and has acknowledged",
    content: ({ source, connections }, scope) => syncz(connections(), source.current().features.clusterId, scope),
  },
];
