/** security.istio.io PeerAuthentication: whether workloads accept plain text, mutual TLS, or both. */
import { type Infer, map, message } from "../../schema/message.ts";
import { enumeration } from "../../schema/scalars.ts";
import { workloadSelectorSchema } from "../../selection/schema.ts";

const mutualTlsSchema = message({
  /** UNSET when unset: inherited from the namespace, then the mesh. */
  mode: enumeration("UNSET", "DISABLE", "PERMISSIVE", "STRICT"),
});

/** Schema of the spec of a PeerAuthentication. */
export const peerAuthenticationSchema = message({
  selector: workloadSelectorSchema,
  mtls: mutualTlsSchema,
  /** By port number, written as text. */
  portLevelMtls: map(mutualTlsSchema),
});

/** The spec of a PeerAuthentication. */
export type PeerAuthentication = Infer<typeof peerAuthenticationSchema>;
/** What a workload or port accepts. */
export type MutualTls = Infer<typeof mutualTlsSchema>;
