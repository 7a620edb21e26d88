/** The templates that come with us, by the names that pods ask for in `inject.istio.io/templates`. */
import { GATEWAY_TEMPLATE } from "./gateway.ts";
import { GRPC_AGENT_TEMPLATE } from "./grpc-agent.ts";
import { GRPC_SIMPLE_TEMPLATE } from "./grpc-simple.ts";
import { SIDECAR_TEMPLATE } from "./sidecar.ts";

/** Texts by name. */
export const STOCK_TEMPLATES: Readonly<Record<string, string>> = {
  sidecar: SIDECAR_TEMPLATE,
  gateway: GATEWAY_TEMPLATE,
  "grpc-agent": GRPC_AGENT_TEMPLATE,
  "grpc-simple": GRPC_SIMPLE_TEMPLATE,
};
