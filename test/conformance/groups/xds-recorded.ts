/** Inputs of Istio's own tests to the resources of a proxy: simulation, benchmarks, and generation of single kinds. */
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { ListenerSchema } from "#gen/envoy/config/listener/v3/listener_pb.ts";
import { RouteConfigurationSchema } from "#gen/envoy/config/route/v3/route_pb.ts";
import { type CalledResources, type CallResult, simulate } from "../../simulation/call.ts";
import { compareJson } from "../compare.ts";
import { type Generated, generate } from "../generate.ts";
import { type Case, type Group, readJson } from "../harness.ts";
import { kindCases, type NodeDump, once, recordedProxy } from "../recorded.ts";
import { homeOf, type RecordedInput, recordedMesh } from "../recorded-mesh.ts";
import { withoutType } from "../resources.ts";

interface RecordedCase {
  readonly name: string;
  readonly input?: RecordedInput;
  /** Benchmarks have one text with all objects. */
  readonly inputYAML?: string;
  readonly meshConfig?: object;
  readonly proxy: NodeDump;
  /** Of one kind, or a file for each kind. */
  readonly recorded: string | Readonly<Record<string, string>>;
  readonly kind?: string;
  readonly calls?: readonly RecordedCall[];
}

/** A call and what must become of it; what is not said is not looked at, unless all of it counts. */
interface RecordedCall {
  readonly name: string;
  readonly call: {
    readonly address?: string;
    readonly port: number;
    readonly path?: string;
    readonly protocol?: "http" | "http2" | "tcp";
    readonly tLS?: "plaintext" | "tls" | "mtls";
    readonly alpn?: string;
    readonly hostHeader?: string;
    readonly sni?: string;
    readonly callMode?: string;
    readonly mtlsSecretConfigName?: string;
  };
  readonly want: CallResult & { readonly strictMatch?: boolean };
}

/** The names of kinds differ between the groups. */
const KINDS: Readonly<Record<string, string>> = {
  Cluster: "clusters",
  Listener: "listeners",
  RouteConfiguration: "routes",
  ClusterLoadAssignment: "endpoints",
};

export const xdsSimulation = recordedGroup("xds simulation", "simulation");
export const xdsBenchmarks = recordedGroup("xds benchmarks", "benchmarks");
export const xdsGeneration = recordedGroup("xds config generation", "configgen");

function recordedGroup(name: string, folderName: string): Group {
  return {
    name,
    cases: async (folder) => {
      const at = join(folder, "pilot/xds-golden", folderName);
      const cases: Case[] = [];
      for await (const file of glob("*.json", { cwd: at })) {
        const one = await readJson<RecordedCase>(at, file);
        if (one !== undefined) cases.push(...(await casesOf(at, one)));
      }
      return cases.sort((a, b) => (a.name < b.name ? -1 : 1));
    },
  };
}

async function casesOf(at: string, one: RecordedCase): Promise<readonly Case[]> {
  const { name, input, inputYAML, meshConfig, proxy, recorded, kind = "" } = one;
  const given: RecordedInput = input ?? {
    kubernetesYAML: inputYAML ?? "",
    ...(meshConfig && { meshConfig }),
  };
  const generated = once(() => {
    const snapshot = recordedMesh(given);
    return "leftOut" in snapshot
      ? snapshot
      : generate(snapshot, recordedProxy(proxy, homeOf(given, proxy.ipAddresses)));
  });
  const cases: Case[] = [];
  for (const [written, file] of Object.entries(typeof recorded === "string" ? { [kind]: recorded } : recorded)) {
    const resources = ((await readJson<readonly unknown[]>(at, file)) ?? []).map(withoutType);
    const named = KINDS[written] ?? written;
    cases.push(...kindCases({ prefix: `${name} ${named}`, kind: named, resources, generated }));
  }
  return [...cases, ...(one.calls ?? []).map((call) => callCase(call, generated))];
}

/** Addresses of calls that do not care where they go. */
const SOMEWHERE = "1.3.3.7";

function callCase({ name, call, want }: RecordedCall, generated: () => Generated | { readonly leftOut: string }): Case {
  return {
    name: `call ${name}`,
    check: () => {
      const ours = generated();
      if ("leftOut" in ours) return ours;
      const { tLS: tls = "plaintext", hostHeader: host = "", sni = tls === "tls" ? host : "" } = call;
      const { address = SOMEWHERE, protocol = "tcp", path = "/", mtlsSecretConfigName = "default" } = call;
      const got = simulate(calledResources(ours), {
        ...{ address, port: call.port, protocol, tls, sni, host, path },
        ...(call.alpn !== undefined && { alpn: call.alpn }),
        isInbound: call.callMode === "inbound",
        meshCertificate: mtlsSecretConfigName,
      });
      const { strictMatch = false, ...wanted } = want;
      const keys = strictMatch ? Object.keys(got) : Object.keys(wanted);
      const seen = Object.entries(got).filter(([key]) => keys.includes(key) || key === "error");
      return compareJson(Object.fromEntries(seen), wanted);
    },
  };
}

function calledResources({ listeners, routes }: Generated): CalledResources {
  return {
    listeners: [...listeners.values()].map((bytes) => fromBinary(ListenerSchema, bytes)),
    routes: new Map([...routes].map(([name, bytes]) => [name, fromBinary(RouteConfigurationSchema, bytes)])),
  };
}
