import { kind } from "../kind.ts";
import { checkPeerAuthentication } from "./check.ts";
import { peerAuthenticationSchema } from "./schema.ts";

/** security.istio.io PeerAuthentication. */
export const peerAuthenticationKind = kind({
  group: "security.istio.io",
  name: "PeerAuthentication",
  plural: "peerauthentications",
  versions: ["v1", "v1beta1"],
  schema: peerAuthenticationSchema,
  check: checkPeerAuthentication,
  isStrict: true,
  crd: {
    shortName: "pa",
    description: "Whether workloads ask their callers for mutual TLS",
    columns: [{ name: "Mode", jsonPath: ".spec.mtls.mode", description: "Whether mutual TLS is asked of callers" }],
  },
});
