/** networking.k8s.io Ingress. */
import { type Infer, list, message } from "../../schema/message.ts";
import { int32, string, struct } from "../../schema/scalars.ts";

const backendSchema = message({
  service: message({ name: string(), port: message({ name: string(), number: int32() }) }),
  resource: struct(),
});

const pathSchema = message({ path: string(), pathType: string(), backend: backendSchema });

/** Schema of the spec of an Ingress. */
export const ingressSchema = message({
  ingressClassName: string(),
  defaultBackend: backendSchema,
  tls: list(message({ hosts: list(string()), secretName: string() })),
  rules: list(message({ host: string(), http: message({ paths: list(pathSchema) }) })),
});

/** The spec of an Ingress. */
export type Ingress = Infer<typeof ingressSchema>;

/** One path of an Ingress. */
export type IngressPath = Infer<typeof pathSchema>;
