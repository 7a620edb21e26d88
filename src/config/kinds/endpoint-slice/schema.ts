/** discovery.k8s.io EndpointSlice: some of the endpoints of one Service, as Kubernetes found them. */
import { type Infer, list, map, message } from "../../schema/message.ts";
import { anything, bool, int32, string } from "../../schema/scalars.ts";

/** Unset means unknown, which is taken for true. */
const conditionsSchema = message({ ready: bool(), serving: bool(), terminating: bool() });

const endpointSchema = message({
  addresses: list(string()),
  conditions: conditionsSchema,
  hostname: string(),
  nodeName: string(),
  zone: string(),
  targetRef: message({
    apiVersion: string(),
    kind: string(),
    name: string(),
    namespace: string(),
    uid: string(),
    resourceVersion: string(),
    fieldPath: string(),
  }),
  deprecatedTopology: map(string()),
  hints: anything(),
});

const portSchema = message({ name: string(), protocol: string(), port: int32(), appProtocol: string() });

/** Schema of what an EndpointSlice has beside its metadata. */
export const endpointSliceSchema = message({
  /** IPv4, IPv6 or FQDN. */
  addressType: string(),
  endpoints: list(endpointSchema),
  ports: list(portSchema),
});

/** The content of an EndpointSlice. */
export type EndpointSlice = Infer<typeof endpointSliceSchema>;
/** One endpoint: an address and what is known of its pod. */
export type SliceEndpoint = Infer<typeof endpointSchema>;
