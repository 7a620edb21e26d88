/** Gateways whose proxies, ports or certificates are not there, or that claim what others do. */

import { gatewayKind } from "#config/kinds/gateway/kind.ts";
import type { Gateway, ServerTls } from "#config/kinds/gateway/schema.ts";
import { secretKind } from "#config/kinds/secret/kind.ts";
import { type Secret, secretValue } from "#config/kinds/secret/schema.ts";
import { serviceKind } from "#config/kinds/service/kind.ts";
import type { Service } from "#config/kinds/service/schema.ts";
import { type ConfigObject, objectKey } from "#config/schema/config-object.ts";
import { hasLabels } from "#model/labels/labels.ts";
import { fullName, type MeshObjects } from "./mesh-objects.ts";
import type { Findings } from "./message.ts";

type Labels = Readonly<Record<string, string>>;

/** Proxies that are selected, and the ports of their Services. */
export function* portFindings(mesh: MeshObjects): Findings {
  const services = mesh.ofKind(serviceKind);
  for (const gateway of mesh.ofKind(gatewayKind)) {
    yield undefined;
    const object = objectKey(gateway);
    const pods = mesh.podsWith(gateway.spec.selector);
    if (pods.length === 0) {
      const selector = selectorText(gateway.spec.selector);
      yield { object, code: "IST0101", text: `no pod has the labels of the selector (${selector})` };
      continue;
    }
    const ports = new Set(
      pods.flatMap(({ metadata }) =>
        services
          .filter((service) => selects(service, metadata))
          .flatMap(({ spec }) => (spec.ports ?? []).flatMap(reachedPorts)),
      ),
    );
    for (const { port } of gateway.spec.servers ?? [])
      if (port !== undefined && !ports.has(port.number))
        yield { object, code: "IST0162", text: `port ${port.number} is not one of a Service of its pods` };
  }
}

function selects(
  { metadata, spec }: ConfigObject<Service>,
  pod: { readonly namespace: string; readonly labels: Labels },
): boolean {
  return metadata.namespace === pod.namespace && hasLabels(pod.labels, spec.selector);
}

/** The number that proxies listen on, and the one that clients call. */
function reachedPorts({
  port,
  protocol = "TCP",
  targetPort,
}: NonNullable<Service["ports"]>[number]): readonly number[] {
  if (protocol !== "TCP") return [];
  const target = Number(targetPort);
  return Number.isInteger(target) && target > 0 ? [target, port] : [port];
}

/** Certificates that are not there, or none. */
export function* credentialFindings(mesh: MeshObjects): Findings {
  const secrets = new Map(mesh.ofKind(secretKind).map((secret) => [fullName(secret), secret]));
  for (const gateway of mesh.ofKind(gatewayKind)) {
    yield undefined;
    const object = objectKey(gateway);
    const [pod] = mesh.podsWith(gateway.spec.selector);
    if (pod === undefined) continue;
    for (const { tls } of gateway.spec.servers ?? []) {
      const name = tls?.credentialName ?? "";
      if (name === "") continue;
      const secret = secrets.get(name.includes("/") ? name : `${pod.metadata.namespace}/${name}`);
      if (secret === undefined) yield { object, code: "IST0101", text: `Secret "${name}" does not exist` };
      else if (!holdsCertificate(secret.spec))
        yield { object, code: "IST0161", text: `Secret "${name}" holds no certificate with its key` };
    }
  }
}

function holdsCertificate(secret: Secret): boolean {
  const pairs = [
    ["tls.crt", "tls.key"],
    ["cert", "key"],
  ] as const;
  return pairs.some((pair) => pair.every((key) => secretValue(secret, key) !== undefined));
}

/** The same certificate at two gateways of a proxy: clients that keep a connection ask for both hosts on it. */
export function* certificateFindings(mesh: MeshObjects): Findings {
  const gateways = mesh.ofKind(gatewayKind);
  for (const gateway of gateways) {
    yield undefined;
    const others = gateways.filter(
      (other) => other !== gateway && hasLabels(other.spec.selector ?? {}, gateway.spec.selector),
    );
    for (const other of others)
      for (const { tls } of gateway.spec.servers ?? [])
        for (const { tls: theirs } of other.spec.servers ?? [])
          if (tls !== undefined && theirs !== undefined && haveSameCertificate(tls, theirs))
            yield {
              object: objectKey(gateway),
              code: "IST0138",
              text: `${fullName(other)} has the same certificate: requests on kept connections may find no route`,
            };
  }
}

function haveSameCertificate(a: ServerTls, b: ServerTls): boolean {
  const [ours, theirs] = [a.credentialName ?? "", b.credentialName ?? ""];
  if (ours !== "" || theirs !== "") return ours === theirs;
  const isSame = (field: "serverCertificate" | "privateKey") => (a[field] ?? "") !== "" && a[field] === b[field];
  return isSame("serverCertificate") && isSame("privateKey");
}

/** The same host, port and bind address at gateways of the same proxies. */
export function* rivalFindings(mesh: MeshObjects): Findings {
  const gateways = mesh.ofKind(gatewayKind);
  for (const gateway of gateways) {
    yield undefined;
    const rivals = gateways.filter((other) => other !== gateway && shareProxies(gateway, other, mesh));
    for (const { port, hosts = [], bind = "" } of gateway.spec.servers ?? []) {
      const found = rivals.filter(({ spec }) =>
        (spec.servers ?? []).some(
          (server) =>
            server.port?.number === port?.number &&
            (server.bind ?? "") === bind &&
            (server.hosts ?? []).some((host) => hosts.includes(host)),
        ),
      );
      if (found.length > 0)
        yield {
          object: objectKey(gateway),
          code: "IST0145",
          text: `port ${port?.number} with ${hosts.join(", ")} is also of ${found.map(fullName).sort().join(", ")}`,
        };
    }
  }
}

function shareProxies(a: ConfigObject<Gateway>, b: ConfigObject<Gateway>, mesh: MeshObjects): boolean {
  const [ours, theirs] = [selectorText(a.spec.selector), selectorText(b.spec.selector)];
  if (ours === theirs) return true;
  if (!ours.includes(theirs) && !theirs.includes(ours)) return false;
  return mesh.podsWith({ ...a.spec.selector, ...b.spec.selector }).length > 0;
}

function selectorText(selector: Labels = {}): string {
  return Object.entries(selector)
    .map(([key, value]) => `${key}=${value}`)
    .sort()
    .join(",");
}
