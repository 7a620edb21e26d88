/**
 * Every place where bytes of strangers enter, and the growth test that covers it. `scripts/check-entry-points.ts` compares the list
 * with the sources, `entry-points.test.ts` with what running programs listen on.
 */

export interface EntryPoint {
  /** Port or path, as the documents call it. */
  readonly name: string;
  /** Who listens; `reader` for files and downloads. */
  readonly program: "control plane" | "agent" | "mesh" | "reader";
  /** What listens: the key of its port or path in the fixture of the growth tests. */
  readonly key?: string;
  readonly kind: "tcp" | "udp" | "unix" | "file";
  /** Source file that opens it or reads it. */
  readonly source: string;
  /** Growth test, below `test/hardening/growth/`. */
  readonly test: string;
  /** Text by which that file names its cases. */
  readonly cases: string;
}

const PLANE = { program: "control plane", kind: "tcp", test: "control-plane.test.ts" } as const;
const AGENT = { program: "agent", kind: "tcp", test: "agent.test.ts" } as const;
const READER = { program: "reader", kind: "file", test: "readers.test.ts" } as const;

export const ENTRY_POINTS: readonly EntryPoint[] = [
  { ...PLANE, name: "15010", key: "grpc", source: "src/lib/grpc/grpc-listener.ts", cases: "15010: " },
  { ...PLANE, name: "15012", key: "secureGrpc", source: "src/lib/grpc/grpc-listener.ts", cases: "15012: " },
  { ...PLANE, name: "15017", key: "webhook", source: "src/webhooks/webhook-listener.ts", cases: "15017: " },
  { ...PLANE, name: "8080", key: "http", source: "src/lib/net/http-listener.ts", cases: '"8080", "http"' },
  {
    ...PLANE,
    name: "15014",
    key: "monitoring",
    source: "src/lib/net/http-listener.ts",
    cases: '"15014", "monitoring"',
  },
  { ...PLANE, name: "9876", key: "controlz", source: "src/lib/net/http-listener.ts", cases: '"9876", "controlz"' },
  { ...AGENT, name: "15004", key: "debug", source: "src/agent/xds-proxy/debug-tap.ts", cases: "15004: " },
  { ...AGENT, name: "15020", key: "status", source: "src/agent/status/server.ts", cases: '"15020", "status"' },
  { ...AGENT, name: "15053/udp", key: "dns", kind: "udp", source: "src/agent/dns/udp-socket.ts", cases: "15053/udp: " },
  { ...AGENT, name: "15053/tcp", key: "dns", source: "src/agent/dns/server.ts", cases: "15053/tcp: " },
  { ...AGENT, name: "STS", key: "sts", source: "src/agent/sts/server.ts", cases: "STS: a token" },
  { ...AGENT, name: "SDS", key: "sds", kind: "unix", source: "src/agent/unix-socket.ts", cases: "SDS: " },
  { ...AGENT, name: "XDS", key: "xds", kind: "unix", source: "src/agent/unix-socket.ts", cases: "XDS: " },
  {
    name: "control socket of a mesh",
    program: "mesh",
    kind: "unix",
    source: "src/standalone/control/serve-control.ts",
    test: "control-socket.test.ts",
    cases: "one line: ",
  },
  { ...READER, name: "configuration files", source: "src/lib/yaml/read.ts", cases: "configuration files" },
  { ...READER, name: "mesh config", source: "src/config/mesh/mesh-config.ts", cases: "mesh config" },
  { ...READER, name: "key sets", source: "src/sources/jwks/fetch-keys.ts", cases: "key sets: " },
  { ...READER, name: "image layers", source: "src/agent/wasm/unpack.ts", cases: "image layers" },
  { ...READER, name: "image references", source: "src/agent/wasm/image-reference.ts", cases: "image references" },
  {
    ...READER,
    name: "registry credentials",
    source: "src/agent/wasm/registry-credentials.ts",
    cases: "registry credentials",
  },
  { ...READER, name: "Wasm modules", source: "src/agent/wasm/unpack.ts", cases: "Wasm modules" },
  { ...READER, name: "pod files", source: "src/agent/downward-api.ts", cases: "pod labels and annotations" },
  { ...READER, name: "PROXY_CONFIG", source: "src/config/proxy-config/proxy-config.ts", cases: "PROXY_CONFIG" },
  { ...READER, name: "tokens", source: "src/agent/sts/jwt.ts", cases: "tokens" },
  { ...READER, name: "probes", source: "src/agent/status/probes/parse.ts", cases: "probes" },
  { ...READER, name: "scrapes", source: "src/agent/status/answer-reader.ts", cases: "scrapes" },
];

/** Files that open a socket, but read nothing that strangers send, with the reason. */
export const NOT_ENTRY_POINTS: Readonly<Record<string, string>> = {
  "src/agent/debug-socket/serve.ts": "a unix socket of the agent's own account, off by default",
  "src/agent/dns/forward/forward.ts": "asks name servers; the fuzz target dns-messages covers what they answer",
  "src/agent/shared/open-sockets.ts": "opens 15020 and 15053 in the network of a workload and passes them on",
  "src/agent/sds/file-secrets.ts": "its `listen` is for events",
  "src/standalone/run/requests.ts": "its `listen` is for events",
  "src/standalone/run/runner.ts": "its `listen` is for events",
  "src/control-plane/control-plane.ts": "wires the listeners of the control plane",
  "src/control-plane/controlz.ts": "wires ControlZ",
  "src/control-plane/http.ts": "wires 8080 and 15014",
  "src/control-plane/webhooks.ts": "wires 15017",
  "src/agent/serve-sockets.ts": "wires SDS and XDS",
  "src/agent/start-xds.ts": "wires XDS",
  "src/agent/unix-server.ts": "wires SDS and XDS",
  "src/capture/validation/dial.ts": "a test of the rules: sends to itself",
  "src/capture/validation/listeners.ts": "a test of the rules: closes each connection without reading it",
  "src/lib/grpc/server.ts": "serves connections that listeners give it",
  "src/standalone/doctor/diagnose.ts": "asks whether a port is free",
  "src/standalone/egress/open-egress.ts": "asks which address leads out",
  "src/standalone/fabric/forward.ts": "copies bytes of a published port without reading them",
  "src/standalone/fabric/serve-dns.ts": "DNS of one machine, reachable by its workloads; read with dns-packet",
  "src/standalone/init/init.ts": "text of a file that it writes, and a question whether a port is free",
  "src/standalone/ports/host-ports.ts": "asks whether a port is free",
  "src/standalone/up/start-lock.ts": "a lock: closes each connection without reading it",
};
