/** security.istio.io PeerAuthentication: whether workloads accept plain text, mutual TLS, or both. */
import { field, rule } from "../../schema/field.ts";
import { type Infer, map, message } from "../../schema/message.ts";
import { enumeration } from "../../schema/scalars.ts";
import { selectorField } from "../../selection/schema.ts";

const mutualTlsSchema = message({
  /** UNSET when unset: inherited from the namespace, then the mesh. */
  mode: field(enumeration("UNSET", "DISABLE", "PERMISSIVE", "STRICT"), {
    description: "UNSET, DISABLE, PERMISSIVE (also plain text) or STRICT",
  }),
});

/** Schema of the spec of a PeerAuthentication. */
export const peerAuthenticationSchema = field(
  message({
    selector: selectorField,
    mtls: field(mutualTlsSchema, { description: "Mutual TLS of all ports" }),
    /** By port number, written as text. */
    portLevelMtls: field(map(field(mutualTlsSchema, { isBrief: true })), {
      description: "Mutual TLS of single ports, by number",
      minProperties: 1,
      rules: [rule("self.all(key, 0 < int(key) && int(key) <= 65535)", "port must be between 1-65535")],
    }),
  }),
  {
    rules: [
      rule(
        "!has(self.portLevelMtls) || has(self.selector) && has(self.selector.matchLabels) && self.selector.matchLabels.size() > 0",
        "portLevelMtls requires selector",
      ),
    ],
  },
);

/** The spec of a PeerAuthentication. */
export type PeerAuthentication = Infer<typeof peerAuthenticationSchema>;
/** What a workload or port accepts. */
export type MutualTls = Infer<typeof mutualTlsSchema>;
