/** MeshNetworks: which endpoints are in which network, and through which gateways others reach them. */
import { isIP } from "node:net";
import { checkDnsLabel, checkFqdn } from "../checks/names.ts";
import { checkPort, checkSubnet } from "../checks/network.ts";
import { formatField } from "../schema/field-path.ts";
import { type Infer, list, map, message, oneof } from "../schema/message.ts";
import { parse } from "../schema/parse.ts";
import { error, type Parsed, type Problem } from "../schema/problem.ts";
import { string, uint32 } from "../schema/scalars.ts";

const networkSchema = message({
  endpoints: list(message({ fromCidr: string(), fromRegistry: string() }, oneof("fromCidr", "fromRegistry"))),
  gateways: list(
    message(
      { registryServiceName: string(), address: string(), port: uint32(), locality: string() },
      oneof("registryServiceName", "address"),
    ),
  ),
});

/** Schema of the networks of a mesh. */
const meshNetworksSchema = message({ networks: map(networkSchema) });

/** One network. */
export type MeshNetwork = Infer<typeof networkSchema>;
/** The networks of a mesh by name. */
export type MeshNetworks = Readonly<Record<string, MeshNetwork>>;

/** Reads the networks of a mesh; null and undefined are none. */
export function meshNetworksOf(raw: unknown): Parsed<MeshNetworks> {
  const given = parse(meshNetworksSchema, raw ?? {}, "");
  if (given.value === undefined) return { value: undefined, problems: given.problems };
  const { networks = {} } = given.value;
  const found = Object.entries(networks).flatMap(([name, network]) => [
    ...checkNetwork(network, formatField("networks", name)),
  ]);
  const problems = [...given.problems, ...found];
  return { value: problems.some(({ severity }) => severity === "error") ? undefined : networks, problems };
}

function* checkNetwork({ endpoints = [], gateways = [] }: MeshNetwork, at: string): Iterable<Problem> {
  for (const [i, { fromCidr, fromRegistry }] of endpoints.entries()) {
    if (fromCidr !== undefined) yield* checkSubnet(fromCidr, `${at}.endpoints[${i}].fromCidr`);
    if (fromRegistry !== undefined) yield* checkDnsLabel(fromRegistry, `${at}.endpoints[${i}].fromRegistry`);
  }
  for (const [i, { registryServiceName, address, port = 0 }] of gateways.entries()) {
    const field = `${at}.gateways[${i}]`;
    if (registryServiceName !== undefined) yield* checkFqdn(registryServiceName, `${field}.registryServiceName`);
    if (address !== undefined && isIP(address) === 0 && [...checkFqdn(address, "")].length > 0) {
      yield error(`${field}.address`, `must be an IP address or a host name, not "${address}"`);
    }
    yield* checkPort(port, `${field}.port`);
  }
}
