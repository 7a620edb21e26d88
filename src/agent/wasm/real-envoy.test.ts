/** A real Envoy behind the xDS proxy runs modules that came from a server. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { create, fromJson, type JsonObject, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { TypedExtensionConfigSchema } from "#gen/envoy/config/core/v3/extension_pb.ts";
import { WasmSchema } from "#gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.ts";
import { DeltaDiscoveryResponseSchema } from "#gen/envoy/service/discovery/v3/discovery_pb.ts";
import { SILENT } from "#lib/log/log.ts";
import { EXTENSION_TYPE } from "#protocol/messages/type-urls.ts";
import { ENVOY, NO_ENVOY } from "../../../test/support/ads-envoy.ts";
import { eventually, temporaryFolder } from "../../../test/support/fake-control-plane.ts";
import { startServer } from "../../../test/support/fake-registry.ts";
import { read, setUp } from "../../../test/support/xds-proxy-rig.ts";
import { agentMetrics } from "../metrics.ts";
import { extensionConverter } from "./converter.ts";

const text = (value: string) => [value.length, ...Buffer.from(value)];
const section = (id: number, content: readonly number[]) => [id, content.length, ...content];
const body = (...code: readonly number[]) => [code.length + 2, 0, ...code, 0x0b];

/** Adds the header `x-wasm: yes` to responses, through the ABI of proxy-wasm. */
const MODULE = Buffer.from([
  ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
  // ()->(), (i32)->i32, five i32 -> i32, three i32 -> i32
  ...section(
    1,
    [
      4, 0x60, 0, 0, 0x60, 1, 0x7f, 1, 0x7f, 0x60, 5, 0x7f, 0x7f, 0x7f, 0x7f, 0x7f, 1, 0x7f, 0x60, 3, 0x7f, 0x7f, 0x7f,
      1, 0x7f,
    ],
  ),
  ...section(2, [1, ...text("env"), ...text("proxy_add_header_map_value"), 0, 2]),
  ...section(3, [3, 0, 1, 3]),
  ...section(5, [1, 0, 1]),
  ...section(7, [
    4,
    ...text("memory"),
    2,
    0,
    ...text("proxy_abi_version_0_2_1"),
    0,
    1,
    ...text("malloc"),
    0,
    2,
    ...text("proxy_on_response_headers"),
    0,
    3,
  ]),
  // malloc gives 4096; the header is at 0 in memory, its value at 6
  ...section(10, [
    3,
    ...body(),
    ...body(0x41, 0x80, 0x20),
    ...body(0x41, 2, 0x41, 0, 0x41, 6, 0x41, 6, 0x41, 3, 0x10, 0, 0x1a, 0x41, 0),
  ]),
  ...section(11, [1, 0, 0x41, 0, 0x0b, ...text("x-wasmyes")]),
]);

const NAME = "default.plugin";
const RBAC = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC";
const WASM = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";

function response(nonce: string, config: JsonObject): Buffer {
  const typedConfig = anyPack(WasmSchema, fromJson(WasmSchema, { config }));
  const resource = anyPack(TypedExtensionConfigSchema, create(TypedExtensionConfigSchema, { name: NAME, typedConfig }));
  const resources = [{ name: NAME, version: nonce, resource }];
  const message = create(DeltaDiscoveryResponseSchema, { typeUrl: EXTENSION_TYPE, nonce, resources });
  return Buffer.from(toBinary(DeltaDiscoveryResponseSchema, message));
}

const plugin = (uri: string, more: JsonObject = {}): JsonObject => ({
  name: NAME,
  ...more,
  vmConfig: {
    runtime: "envoy.wasm.runtime.v8",
    code: { remote: { httpUri: { uri, cluster: "_", timeout: "5s" }, sha256: "nil" } },
  },
});

test("Envoy runs a module that the agent fetched, and follows the fail strategy of one that cannot be had", {
  skip: NO_ENVOY,
  timeout: 180_000,
}, async (t) => {
  const modules = await startServer(
    ({ url }, answer) => void answer.writeHead(url === "/good" ? 200 : 404).end(MODULE),
  );
  const folder = temporaryFolder(t);
  const done = new AbortController();
  const config = {
    insecureHosts: [modules.host],
    allowLocal: false,
    allowedRanges: [],
    expiryMs: 60_000,
    purgeEveryMs: 60_000,
    httpTimeoutMs: 5_000,
    httpAttempts: 1,
    dockerConfigFolder: "",
  };
  const convertExtensions = extensionConverter({
    config,
    proxies: {},
    dnsDomain: "default.svc.cluster.local",
    place: { folder },
    log: SILENT,
    metrics: agentMetrics(),
    done: done.signal,
  });
  const { connected, folder: socketFolder } = await setUp(t, { convertExtensions });
  const envoy = spawn(ENVOY, [
    "--config-yaml",
    JSON.stringify(bootstrap(join(socketFolder, "XDS"), folder)),
    "--concurrency",
    "1",
    "--disable-hot-restart",
    "-l",
    "warning",
  ]);
  let output = "";
  envoy.stderr.on("data", (chunk) => {
    output += chunk;
  });
  t.after(async () => {
    done.abort();
    modules.close();
    envoy.kill("SIGKILL");
    await once(envoy, "exit");
  });
  const { stream: upstream, requests } = await connected();
  const answers = () => requests.map((bytes) => read(bytes)).filter(({ typeUrl }) => typeUrl === EXTENSION_TYPE);
  const push = async (nonce: string, given: JsonObject) => {
    upstream.write(response(nonce, given));
    await eventually(
      `an answer to ${nonce}`,
      () => answers().some(({ responseNonce }) => responseNonce === nonce),
      30_000,
    );
    const answer = answers().find(({ responseNonce }) => responseNonce === nonce);
    assert.equal(answer?.errorDetail, undefined, output);
  };
  await eventually("the subscription", () => answers().length > 0);
  await push("1", plugin(`http://${modules.host}/good`));
  const good = await eventuallyGet(join(folder, "listener"), ({ header }) => header === "yes");
  assert.deepEqual(good, { status: 200, header: "yes" });
  await push("2", plugin(`http://${modules.host}/missing`));
  await eventuallyGet(join(folder, "listener"), ({ status }) => status === 403);
  await push("3", plugin(`http://${modules.host}/missing`, { failOpen: true }));
  await eventuallyGet(join(folder, "listener"), ({ status, header }) => status === 200 && header === undefined);
});

type Got = { readonly status: number; readonly header: string | string[] | undefined };

async function eventuallyGet(socketPath: string, wanted: (got: Got) => boolean): Promise<Got> {
  let got: Got = { status: 0, header: undefined };
  await eventually(
    "the wanted answer",
    async () => {
      got = await new Promise<Got>((resolve) => {
        const call = request({ socketPath, path: "/" }, ({ statusCode = 0, headers }) =>
          resolve({ status: statusCode, header: headers["x-wasm"] }),
        );
        call.on("error", () => resolve({ status: 0, header: undefined }));
        call.end();
      });
      return wanted(got);
    },
    30_000,
  );
  return got;
}

/** One listener whose only filter before the router comes over ECDS. */
function bootstrap(xdsSocket: string, folder: string): JsonObject {
  const typed = (type: string, more: JsonObject) => ({
    "@type": `type.googleapis.com/envoy.extensions.${type}`,
    ...more,
  });
  const route_config = {
    virtual_hosts: [
      { name: "all", domains: ["*"], routes: [{ match: { prefix: "/" }, direct_response: { status: 200 } }] },
    ],
  };
  const discovery = { config_source: { ads: {}, resource_api_version: "V3" }, type_urls: [WASM, RBAC] };
  const http_filters = [
    { name: NAME, config_discovery: discovery },
    { name: "router", typed_config: typed("filters.http.router.v3.Router", {}) },
  ];
  const manager = typed("filters.network.http_connection_manager.v3.HttpConnectionManager", {
    stat_prefix: "in",
    route_config,
    http_filters,
  });
  const filter_chains = [{ filters: [{ name: "http", typed_config: manager }] }];
  const grpc = typed("upstreams.http.v3.HttpProtocolOptions", { explicit_http_config: { http2_protocol_options: {} } });
  const endpoint = { address: { pipe: { path: xdsSocket } } };
  return {
    node: { id: "sidecar~127.0.0.1~a.default~default.svc.cluster.local", cluster: "a" },
    dynamic_resources: {
      ads_config: {
        api_type: "DELTA_GRPC",
        transport_api_version: "V3",
        grpc_services: [{ envoy_grpc: { cluster_name: "xds-grpc" } }],
      },
    },
    static_resources: {
      listeners: [{ name: "in", address: { pipe: { path: join(folder, "listener") } }, filter_chains }],
      clusters: [
        {
          name: "xds-grpc",
          type: "STATIC",
          typed_extension_protocol_options: { "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": grpc },
          load_assignment: { cluster_name: "xds-grpc", endpoints: [{ lb_endpoints: [{ endpoint }] }] },
        },
      ],
    },
  };
}
