/** networking.istio.io Sidecar: what a workload's proxy listens to, and which services it knows. */
import { field } from "../../schema/field.ts";
import { type Infer, list, message, required } from "../../schema/message.ts";
import { enumeration, string, uint32 } from "../../schema/scalars.ts";
import { labelSelectorSchema } from "../../selection/schema.ts";
import { connectionPoolSchema } from "../destination-rule/schema.ts";
import { serverTlsSchema } from "../gateway/schema.ts";
import { destinationSchema } from "../virtual-service/schema.ts";

const sidecarPortSchema = message({ number: uint32(), protocol: string(), name: string(), targetPort: uint32() });

/** How traffic gets to a listener: by redirection, or because the application connects to it. */
const captureMode = enumeration("DEFAULT", "IPTABLES", "NONE");

const ingressListenerSchema = message({
  port: required(sidecarPortSchema),
  bind: string(),
  captureMode,
  /** `127.0.0.1:PORT`, `0.0.0.0:PORT`, `[::1]:PORT`, `[::]:PORT`, `:PORT` or `unix://PATH`. */
  defaultEndpoint: string(),
  tls: serverTlsSchema,
  connectionPool: connectionPoolSchema,
});

const egressListenerSchema = message({
  /** Without one the listener stands for all ports that no other has. */
  port: sidecarPortSchema,
  bind: string(),
  captureMode,
  /** `namespace/host`, each of which may be `*`; the namespace may be `.` for one's own and `~` for none. */
  hosts: required(list(string())),
});

/** Where traffic to unknown hosts goes, in place of what the mesh config says. */
const outboundTrafficPolicySchema = message({
  /** REGISTRY_ONLY when unset, although the mesh-wide default is ALLOW_ANY. */
  mode: enumeration("REGISTRY_ONLY", "ALLOW_ANY"),
  egressProxy: field(destinationSchema, { isBrief: true }),
});

/** Schema of the spec of a Sidecar. */
export const sidecarSchema = message({
  workloadSelector: labelSelectorSchema,
  ingress: field(list(ingressListenerSchema), {
    description: "Ports that the workload takes traffic on, instead of those of its services",
  }),
  egress: field(list(egressListenerSchema), { description: "Hosts that the workload may know, by namespace" }),
  inboundConnectionPool: field(connectionPoolSchema, { description: "Limits of connections to the workload" }),
  outboundTrafficPolicy: field(outboundTrafficPolicySchema, {
    description: "What happens to calls of hosts that nobody knows",
  }),
});

/** The spec of a Sidecar. */
export type Sidecar = Infer<typeof sidecarSchema>;
/** A port of the workload as it is to be opened. */
export type SidecarIngress = Infer<typeof ingressListenerSchema>;
/** Services the workload may call, perhaps on one port or socket only. */
export type SidecarEgress = Infer<typeof egressListenerSchema>;
/** A port, whose protocol and name may be left out. */
export type SidecarPort = Infer<typeof sidecarPortSchema>;
