/** networking.istio.io Gateway: which ports and hosts a proxy at the edge opens. */
import { atMostOne, field } from "../../schema/field.ts";
import { type Infer, list, map, message, required } from "../../schema/message.ts";
import { bool, enumeration, string, uint32 } from "../../schema/scalars.ts";

const tlsProtocol = enumeration("TLS_AUTO", "TLSV1_0", "TLSV1_1", "TLSV1_2", "TLSV1_3");

const ONE_CREDENTIAL = [
  atMostOne(["tlsCertificates", "credentialNames"], "only one of credentialNames or tlsCertificates can be set"),
  atMostOne(["credentialName", "credentialNames"], "only one of credentialName or credentialNames can be set"),
  atMostOne(["credentialName", "tlsCertificates"], "only one of credentialName or tlsCertificates can be set"),
];

const tlsFields = {
  httpsRedirect: field(bool(), { description: "Answers plain requests with a redirection to HTTPS" }),
  /** PASSTHROUGH when unset. */
  mode: enumeration("PASSTHROUGH", "SIMPLE", "MUTUAL", "AUTO_PASSTHROUGH", "ISTIO_MUTUAL", "OPTIONAL_MUTUAL"),
  serverCertificate: string(),
  privateKey: string(),
  caCertificates: string(),
  caCrl: string(),
  credentialName: field(string(), { description: "The Secret with certificate and key" }),
  credentialNames: field(list(string()), { minItems: 1, maxItems: 2 }),
  caCertCredentialName: string(),
  tlsCertificates: field(
    list(message({ serverCertificate: string(), privateKey: string(), caCertificates: string() })),
    { minItems: 1, maxItems: 2 },
  ),
  subjectAltNames: list(string()),
  verifyCertificateSpki: list(string()),
  verifyCertificateHash: list(string()),
  minProtocolVersion: tlsProtocol,
  maxProtocolVersion: tlsProtocol,
  cipherSuites: list(string()),
};

/** TLS of a server; a Sidecar has it for its own ports. */
export const serverTlsSchema = field(message(tlsFields), { rules: ONE_CREDENTIAL });

const portSchema = message({
  number: required(uint32()),
  protocol: required(string()),
  name: required(string()),
  targetPort: uint32(),
});

const serverSchema = message({
  port: required(field(portSchema, { description: "Number, name and protocol" })),
  bind: string(),
  /** `host`, or `namespace/host` to take virtual services of that namespace only. */
  hosts: required(
    field(list(string()), { description: "Names that are served, with a namespace before a slash if need be" }),
  ),
  tls: field(serverTlsSchema, { description: "Certificates, and whether callers need some" }),
  defaultEndpoint: string(),
  name: string(),
});

/** Schema of the spec of a Gateway. */
export const gatewaySchema = message({
  servers: field(list(serverSchema), { description: "Ports, with hosts and TLS" }),
  selector: field(map(string()), { description: "Labels of the pods that open the ports" }),
});

/** The spec of a Gateway. */
export type Gateway = Infer<typeof gatewaySchema>;
/** One port and the hosts on it. */
export type GatewayServer = Infer<typeof serverSchema>;
/** TLS of a server. */
export type ServerTls = Infer<typeof serverTlsSchema>;
