/** networking.istio.io Gateway: which ports and hosts a proxy at the edge opens. */
import { type Infer, list, map, message, required } from "../../schema/message.ts";
import { bool, enumeration, string, uint32 } from "../../schema/scalars.ts";

const tlsProtocol = enumeration("TLS_AUTO", "TLSV1_0", "TLSV1_1", "TLSV1_2", "TLSV1_3");

/** TLS of a server; a Sidecar has it for its own ports. */
export const serverTlsSchema = message({
  httpsRedirect: bool(),
  /** PASSTHROUGH when unset. */
  mode: enumeration("PASSTHROUGH", "SIMPLE", "MUTUAL", "AUTO_PASSTHROUGH", "ISTIO_MUTUAL", "OPTIONAL_MUTUAL"),
  serverCertificate: string(),
  privateKey: string(),
  caCertificates: string(),
  caCrl: string(),
  credentialName: string(),
  credentialNames: list(string()),
  caCertCredentialName: string(),
  tlsCertificates: list(message({ serverCertificate: string(), privateKey: string(), caCertificates: string() })),
  subjectAltNames: list(string()),
  verifyCertificateSpki: list(string()),
  verifyCertificateHash: list(string()),
  minProtocolVersion: tlsProtocol,
  maxProtocolVersion: tlsProtocol,
  cipherSuites: list(string()),
});

const portSchema = message({
  number: required(uint32()),
  protocol: required(string()),
  name: required(string()),
  targetPort: uint32(),
});

const serverSchema = message({
  port: required(portSchema),
  bind: string(),
  /** `host`, or `namespace/host` to take virtual services of that namespace only. */
  hosts: required(list(string())),
  tls: serverTlsSchema,
  defaultEndpoint: string(),
  name: string(),
});

/** Schema of the spec of a Gateway. */
export const gatewaySchema = message({
  servers: list(serverSchema),
  selector: map(string()),
});

/** The spec of a Gateway. */
export type Gateway = Infer<typeof gatewaySchema>;
/** One port and the hosts on it. */
export type GatewayServer = Infer<typeof serverSchema>;
/** TLS of a server. */
export type ServerTls = Infer<typeof serverTlsSchema>;
