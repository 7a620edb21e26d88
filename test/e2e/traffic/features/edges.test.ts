/** The edges of a mesh: gateways, hosts outside, Sidecars, patches. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { assertSettled } from "../../../support/envoy-settled.ts";
import { eventually } from "../../../support/fake-control-plane.ts";
import { meshUnavailable } from "../../../support/mesh-run.ts";
import { type FeaturesMesh, networking, upFeatures } from "./features-mesh.ts";

const TO_ECHO = [{ destination: { host: "echo.default.svc.cluster.local", port: { number: 80 } } }];
const OUTSIDE = "outside.world.svc.cluster.local";
const FAR_PORT = { name: "http", port: 80, targetPort: 8080 };
const EGRESS = "istio-egressgateway.istio-system.svc.cluster.local";

describe("gateways, hosts outside and patches in a mesh", { skip: meshUnavailable() }, () => {
  let on: FeaturesMesh;
  let outside: string;
  let ingress: string;
  before(async () => {
    on = await upFeatures();
    const addressOf = async (name: string) => (await (await on.mesh.workload(name)).status()).address;
    outside = await addressOf("outside");
    ingress = await addressOf("istio-ingressgateway");
  });
  after(() => on[Symbol.asyncDispose]());
  afterEach(() => assertSettled(on.mesh, ["client", "echo-3", "istio-ingressgateway", "istio-egressgateway"]));

  function file(name: string): string {
    return join(on.folder, "certificates", name);
  }

  /** Waits for a line of a proxy's log, which Envoy writes once a second. */
  function logged(member: string, line: RegExp): Promise<void> {
    return eventually(`${member} logs ${line}`, async () => line.test(await on.mesh.logs(member, "proxy")));
  }

  /** A Secret with the certificate of that name. */
  function secret(name: string, namespace: string, withRoots = false): object {
    const text = (path: string) => readFileSync(file(path)).toString("base64");
    const data = { "tls.crt": text(`${name}.crt`), "tls.key": text(`${name}.key`) };
    return {
      apiVersion: "v1",
      kind: "Secret",
      type: "kubernetes.io/tls",
      metadata: { name, namespace },
      data: withRoots ? { ...data, "ca.crt": text("ca.crt") } : data,
    };
  }

  /** What a caller outside of the mesh gets from the ingress gateway over TLS. */
  async function https(host: string, ...args: readonly string[]) {
    const connection = ["--connect-to", `${host}:443:${ingress}:8443`, "--cacert", file("ca.crt"), "-o", "/dev/null"];
    const form = ["-w", "%{http_code} %{ssl_verify_result}", ...connection, ...args, `https://${host}/`];
    const { code, stdout } = await on.mesh.exec("outside", ["curl", "-sS", "-m", "10", ...form]);
    return code === 0 ? stdout : `failed ${code}`;
  }

  test("one port of a gateway serves many hosts, each in its own TLS mode", async () => {
    const tls = (name: string, hosts: readonly string[], settings: object) => ({
      port: { number: 443, name, protocol: "HTTPS" },
      hosts,
      tls: settings,
    });
    const gateway = (name: string, servers: readonly object[]) =>
      networking("Gateway", name, { selector: { istio: "ingressgateway" }, servers }, "istio-system");
    const http = { number: 80, name: "http", protocol: "HTTP" };
    await using _ = await on.with(
      secret("shop", "istio-system"),
      secret("bank", "istio-system", true),
      gateway("shop", [
        { port: http, hosts: ["shop.example.com"], tls: { httpsRedirect: true } },
        tls("https-shop", ["shop.example.com"], { mode: "SIMPLE", credentialName: "shop" }),
      ]),
      gateway("bank", [
        { port: http, hosts: ["default/plain.example.com"] },
        tls("https-bank", ["bank.example.com"], { mode: "MUTUAL", credentialName: "bank" }),
        tls("https-maybe", ["maybe.example.com"], { mode: "OPTIONAL_MUTUAL", credentialName: "bank" }),
        {
          port: { number: 443, name: "tls-through", protocol: "TLS" },
          hosts: ["outside.example.com"],
          tls: { mode: "PASSTHROUGH" },
        },
        { port: { number: 9000, name: "tcp", protocol: "TCP" }, hosts: ["*"] },
      ]),
      networking("ServiceEntry", "outside", {
        hosts: ["outside.example.com"],
        ports: [{ number: 443, name: "tls", protocol: "TLS", targetPort: 8443 }],
        resolution: "STATIC",
        endpoints: [{ address: outside }],
      }),
      networking("VirtualService", "hosts", {
        hosts: ["shop.example.com", "bank.example.com", "maybe.example.com", "plain.example.com"],
        gateways: ["istio-system/shop", "istio-system/bank"],
        http: [{ route: TO_ECHO }],
      }),
      networking("VirtualService", "through", {
        hosts: ["outside.example.com"],
        gateways: ["istio-system/bank"],
        tls: [
          {
            match: [{ port: 443, sniHosts: ["outside.example.com"] }],
            route: [{ destination: { host: "outside.example.com", port: { number: 443 } } }],
          },
        ],
      }),
      networking("VirtualService", "tcp", {
        hosts: ["*"],
        gateways: ["istio-system/bank"],
        tcp: [{ match: [{ port: 9000 }], route: [{ destination: { host: "echo", port: { number: 9000 } } }] }],
      }),
    );
    assert.equal(await https("shop.example.com"), "200 0");
    const withCertificate = ["--cert", file("client.crt"), "--key", file("client.key")];
    assert.match(await https("bank.example.com"), /^failed/);
    assert.equal(await https("bank.example.com", ...withCertificate), "200 0");
    assert.equal(await https("maybe.example.com", "-k"), "200 20");
    assert.equal(await https("maybe.example.com", "-k", ...withCertificate), "200 20");
    assert.match(await https("unknown.example.com", "-k"), /^failed/);
    assert.equal(await https("outside.example.com"), "200 0", "the certificate is that of the server behind");
    const plain = (host: string) => on.mesh.curl("outside", `http://${ingress}:8080/a?b=c`, ["-H", `host: ${host}`]);
    const redirected = await plain("shop.example.com");
    assert.deepEqual([redirected.status, redirected.headers.location], [301, "https://shop.example.com/a?b=c"]);
    assert.equal((await plain("plain.example.com")).status, 200);
    assert.equal((await plain("bank.example.com")).status, 404);
    const tcp = await on.mesh.exec("outside", ["sh", "-c", `echo hi | curl -sS -m 5 telnet://${ingress}:9000`]);
    assert.match(tcp.stdout, /^echo-\d got hi/);
  });

  test("TLS is originated with files, with Secrets, and checked", async () => {
    const entry = (host: string, port: number) =>
      networking("ServiceEntry", host.replaceAll(".", "-"), {
        hosts: [host],
        location: "MESH_EXTERNAL",
        ports: [{ number: 80, name: "http", protocol: "HTTP", targetPort: port }],
        resolution: "STATIC",
        endpoints: [{ address: outside }],
      });
    const rule = (host: string, tls: object, selector?: object) =>
      networking("DestinationRule", host.replaceAll(".", "-"), {
        host,
        ...(selector === undefined ? {} : { workloadSelector: { matchLabels: selector } }),
        trafficPolicy: { portLevelSettings: [{ port: { number: 80 }, tls }] },
      });
    const checked = { sni: "outside.example.com", subjectAltNames: ["outside.example.com"] };
    const pair = { clientCertificate: file("client.crt"), privateKey: file("client.key") };
    await using _ = await on.with(
      ...["simple.example.com", "mutual.example.com", "secret.example.com", "wrong.example.com"].map((host) =>
        entry(host, 8443),
      ),
      secret("client", "default", true),
      rule("simple.example.com", { mode: "SIMPLE", caCertificates: file("ca.crt"), ...checked }),
      rule("mutual.example.com", { mode: "MUTUAL", caCertificates: file("ca.crt"), ...pair, ...checked }),
      rule("secret.example.com", { mode: "MUTUAL", credentialName: "client", ...checked }, { app: "client" }),
      rule("wrong.example.com", {
        mode: "SIMPLE",
        caCertificates: file("ca.crt"),
        subjectAltNames: ["other.example.com"],
      }),
    );
    const simple = await on.echo("http://simple.example.com/", "--resolve", `simple.example.com:80:${outside}`);
    assert.deepEqual(simple.tls, { serverName: "outside.example.com", trusted: false });
    for (const host of ["mutual.example.com", "secret.example.com"]) {
      const { tls } = await on.echo(`http://${host}/`, "--resolve", `${host}:80:${outside}`);
      assert.deepEqual(tls, { serverName: "outside.example.com", client: "client.example.com", trusted: true }, host);
    }
    assert.equal(await on.status("http://wrong.example.com/", "--resolve", `wrong.example.com:80:${outside}`), 503);
  });

  test("every kind of ServiceEntry leads where it says", async () => {
    const ports = [{ number: 80, name: "http", protocol: "HTTP", targetPort: 8080 }];
    const entry = (name: string, spec: object) =>
      networking("ServiceEntry", name, { location: "MESH_EXTERNAL", ports, ...spec });
    const dns = { endpoints: [{ address: OUTSIDE }] };
    await using _ = await on.with(
      entry("dns", { hosts: ["dns.example.com"], resolution: "DNS", ...dns }),
      entry("robin", { hosts: ["robin.example.com"], resolution: "DNS_ROUND_ROBIN", ...dns }),
      entry("static", { hosts: ["static.example.com"], resolution: "STATIC", endpoints: [{ address: outside }] }),
      entry("ports", {
        hosts: ["ports.example.com"],
        resolution: "STATIC",
        ports: [{ number: 80, name: "http", protocol: "HTTP" }],
        endpoints: [{ address: outside, ports: { http: 8080 } }],
      }),
      entry("none", {
        hosts: ["none.example.com"],
        resolution: "NONE",
        ports: [{ number: 8080, name: "http", protocol: "HTTP" }],
      }),
      entry("wild", {
        hosts: ["*.wild.example.com"],
        resolution: "NONE",
        ports: [{ number: 8080, name: "http", protocol: "HTTP" }],
      }),
      networking("ServiceEntry", "selecting", {
        hosts: ["selecting.example.com"],
        location: "MESH_INTERNAL",
        ports,
        resolution: "STATIC",
        workloadSelector: { labels: { version: "v3" } },
      }),
      entry("addressed", {
        hosts: ["addressed.example.com"],
        addresses: ["240.1.2.3"],
        resolution: "STATIC",
        ports: [{ number: 7000, name: "tcp", protocol: "TCP", targetPort: 9000 }],
        endpoints: [{ address: outside }],
      }),
    );
    for (const host of ["dns", "robin", "static", "ports"]) {
      assert.equal((await on.echo(`http://${host}.example.com/`)).pod, "outside", host);
    }
    for (const host of ["none.example.com", "a.wild.example.com"]) {
      const { pod } = await on.echo(`http://${host}:8080/`, "--resolve", `${host}:8080:${outside}`);
      assert.equal(pod, "outside", host);
    }
    assert.equal((await on.echo("http://selecting.example.com/")).pod, "echo-3");
    const tcp = await on.mesh.exec("client", ["sh", "-c", "echo hi | curl -sS -m 5 telnet://240.1.2.3:7000"]);
    assert.match(tcp.stdout, /^outside got hi/);
    await logged("client", /outbound\|8080\|\|\*\.wild\.example\.com/);
    await logged("client", /outbound\|8080\|\|none\.example\.com/);
  });

  test("a host that only a waypoint would resolve has a route and no cluster", async () => {
    const ports = [{ number: 80, name: "http", protocol: "HTTP" }];
    const entry = (name: string, spec: object) => networking("ServiceEntry", name, { ports, ...spec });
    await using _ = await on.with(
      entry("dynamic", { hosts: ["*.dynamic.example.com"], resolution: "DYNAMIC_DNS" }),
      entry("beside", { hosts: ["beside.example.com"], resolution: "DNS", endpoints: [{ address: OUTSIDE }] }),
    );
    const resolved = ["--resolve", `a.dynamic.example.com:80:${outside}`];
    assert.deepEqual([...(await on.pods(3, "http://a.dynamic.example.com/", ...resolved))], [["503", 3]]);
    await logged("client", / 503 NC cluster_not_found /);
  });

  test("a service in another network is reached through its gateway, with mutual TLS from end to end", async () => {
    const metadata = { name: "far", namespace: "default" };
    const address = (await (await on.mesh.workload("echo-2")).status()).address;
    await using _ = await on.with(
      { apiVersion: "v1", kind: "Service", metadata, spec: { selector: { app: "far" }, ports: [FAR_PORT] } },
      networking("WorkloadEntry", "far", {
        address,
        network: "far",
        serviceAccount: "echo",
        labels: { app: "far", "security.istio.io/tlsMode": "istio" },
      }),
      {
        apiVersion: "v1",
        kind: "Service",
        metadata: { name: "eastwest", namespace: "istio-system", labels: { "topology.istio.io/network": "far" } },
        spec: {
          selector: { istio: "ingressgateway" },
          ports: [{ name: "tls", port: 15443 }],
          externalIPs: [ingress],
        },
      },
      networking("Gateway", "eastwest", {
        selector: { istio: "ingressgateway" },
        servers: [
          {
            port: { number: 15443, name: "tls", protocol: "TLS" },
            tls: { mode: "AUTO_PASSTHROUGH" },
            hosts: ["*.local"],
          },
        ],
      }),
    );
    assert.deepEqual([...(await on.pods(20, "http://far/"))], [["echo-2", 20]]);
    const { headers } = await on.echo("http://far/identity");
    assert.match(headers["x-forwarded-client-cert"] ?? "", /By=[^;]*\/sa\/echo;.*URI=[^;]*\/sa\/client/);
    const filter = "outbound_.80_._.far.default.svc.cluster.local;?.upstream_cx_total";
    const admin = `http://localhost:15000/stats?filter=${encodeURIComponent(filter)}`;
    const { stdout: led } = await on.mesh.exec("istio-ingressgateway", ["curl", "-sS", admin]);
    assert.match(led, /upstream_cx_total: [1-9]/, "the gateway led the connections on");
    const other = ["--connect-to", `far:443:${ingress}:15443`, "-k", "https://outside.world.svc.cluster.local/"];
    const refused = await on.mesh.exec("outside", ["curl", "-sS", "-m", "5", ...other]);
    assert.notEqual(refused.code, 0, "a server name that no service of the mesh has");
  });

  test("traffic leaves through the egress gateway, which originates TLS", async () => {
    const host = "leaving.example.com";
    await using _ = await on.with(
      secret("client", "istio-system", true),
      networking("ServiceEntry", "leaving", {
        hosts: [host],
        location: "MESH_EXTERNAL",
        ports: [
          { number: 80, name: "http", protocol: "HTTP" },
          { number: 443, name: "https", protocol: "HTTPS", targetPort: 8443 },
        ],
        resolution: "STATIC",
        endpoints: [{ address: outside }],
      }),
      networking("Gateway", "egress", {
        selector: { istio: "egressgateway" },
        servers: [
          { port: { number: 443, name: "https", protocol: "HTTPS" }, hosts: [host], tls: { mode: "ISTIO_MUTUAL" } },
        ],
      }),
      networking("DestinationRule", "to-egress", {
        host: EGRESS,
        subsets: [
          {
            name: "leaving",
            trafficPolicy: { portLevelSettings: [{ port: { number: 443 }, tls: { mode: "ISTIO_MUTUAL", sni: host } }] },
          },
        ],
      }),
      networking("VirtualService", "leaving", {
        hosts: [host],
        gateways: ["egress", "mesh"],
        http: [
          {
            match: [{ gateways: ["mesh"], port: 80 }],
            route: [{ destination: { host: EGRESS, subset: "leaving", port: { number: 443 } } }],
          },
          { match: [{ gateways: ["egress"], port: 443 }], route: [{ destination: { host, port: { number: 443 } } }] },
        ],
      }),
      networking(
        "DestinationRule",
        "leaving",
        {
          host,
          trafficPolicy: {
            portLevelSettings: [
              { port: { number: 443 }, tls: { mode: "MUTUAL", credentialName: "client", sni: "outside.example.com" } },
            ],
          },
        },
        "istio-system",
      ),
    );
    const { tls, headers } = await on.echo(`http://${host}/`);
    assert.deepEqual(tls, { serverName: "outside.example.com", client: "client.example.com", trusted: true });
    assert.equal(headers.host, host);
    await logged("istio-egressgateway", /outbound\|443\|\|leaving\.example\.com/);
  });

  test("server names lead through the egress gateway, as they are or inside of mutual TLS", async () => {
    const external = (name: string, hosts: readonly string[], spec: object) =>
      networking("ServiceEntry", name, { hosts, location: "MESH_EXTERNAL", ...spec });
    const port = { number: 443, name: "tls", protocol: "TLS" };
    const server = (name: string, host: string, mode: string) =>
      networking("Gateway", name, {
        selector: { istio: "egressgateway" },
        servers: [{ port, hosts: [host], tls: { mode } }],
      });
    const leave = { gateways: ["mesh"], port: 443 };
    const to = (host: string, subset?: string) => [
      { destination: { host, port: { number: 443 }, ...(subset && { subset }) } },
    ];
    const routes = (name: string, host: string, spec: object) =>
      networking("VirtualService", name, { hosts: [host], gateways: ["mesh", name], ...spec });
    const through = (name: string, host: string, target: string) =>
      routes(name, host, {
        tls: [
          { match: [{ ...leave, sniHosts: [host] }], route: to(EGRESS, "as-is") },
          { match: [{ gateways: [name], port: 443, sniHosts: [host] }], route: to(target) },
        ],
      });
    const known = {
      ports: [{ ...port, targetPort: 8443 }],
      resolution: "STATIC",
      endpoints: [{ address: outside }],
    };
    await using _ = await on.with(
      external("named", ["outside.example.com", "inside.example.org"], known),
      external("wild", ["*.example.net"], { ports: [port], resolution: "NONE" }),
      server("named", "outside.example.com", "PASSTHROUGH"),
      server("wild", "*.example.net", "PASSTHROUGH"),
      server("wrapped", "inside.example.org", "ISTIO_MUTUAL"),
      networking("DestinationRule", "to-egress", {
        host: EGRESS,
        subsets: [
          { name: "as-is" },
          { name: "wrapped", trafficPolicy: { tls: { mode: "ISTIO_MUTUAL", sni: "inside.example.org" } } },
        ],
      }),
      through("named", "outside.example.com", "outside.example.com"),
      through("wild", "*.example.net", "outside.example.com"),
      // The gateway has ended its own TLS there: what is left for it is a stream.
      routes("wrapped", "inside.example.org", {
        tls: [{ match: [{ ...leave, sniHosts: ["inside.example.org"] }], route: to(EGRESS, "wrapped") }],
        tcp: [{ match: [{ gateways: ["wrapped"], port: 443 }], route: to("inside.example.org") }],
      }),
    );
    for (const host of ["outside.example.com", "a.example.net", "inside.example.org"]) {
      // Of a wildcard no name is known: whoever calls has resolved it elsewhere.
      const resolved = host === "a.example.net" ? ["--resolve", `${host}:443:${outside}`] : [];
      const { tls } = await on.echo(`https://${host}/`, "-k", ...resolved);
      assert.deepEqual(tls, { serverName: host, trusted: false }, host);
    }
    await logged("istio-egressgateway", /outbound\|443\|\|outside\.example\.com .* a\.example\.net -/);
    await logged("istio-egressgateway", /outbound\|443\|\|inside\.example\.org .* inside\.example\.org -/);
  });

  test("a Sidecar limits what is reached, and leads in to a unix socket", async () => {
    const sidecar = (name: string, app: object, spec: object) =>
      networking("Sidecar", name, { workloadSelector: { labels: app }, ...spec });
    assert.equal(await on.status(`http://${OUTSIDE}:8080/`), 200);
    await using _ = await on.with(
      sidecar(
        "client",
        { app: "client" },
        {
          egress: [{ hosts: ["./*"] }],
          outboundTrafficPolicy: { mode: "REGISTRY_ONLY" },
        },
      ),
      sidecar(
        "echo-3",
        { version: "v3" },
        {
          ingress: [
            {
              port: { number: 8080, name: "http", protocol: "HTTP" },
              defaultEndpoint: `unix://${on.socket}`,
            },
          ],
          egress: [{ hosts: ["./*"] }],
        },
      ),
      networking("DestinationRule", "echo", { host: "echo", subsets: [{ name: "v3", labels: { version: "v3" } }] }),
      networking("VirtualService", "echo", {
        hosts: ["echo"],
        http: [{ route: [{ destination: { host: "echo", subset: "v3", port: { number: 80 } } }] }],
      }),
    );
    assert.equal((await on.echo("http://echo/by-socket")).pod, "echo-3");
    await logged("echo-3", /by-socket.*inbound\|8080/);
    assert.equal(await on.status(`http://${OUTSIDE}/`, "--resolve", `${OUTSIDE}:80:${outside}`), 502);
    const hungUp = await on.mesh.exec("client", ["curl", "-sS", "-m", "5", `http://${outside}:8080/`]);
    assert.notEqual(hungUp.code, 0, hungUp.stdout);
  });

  test("a workload that registered itself takes part while it is well", async () => {
    const reaches = (status: number) =>
      eventually(`${status} of the machine`, async () => (await on.status("http://machines.example.com/")) === status);
    await reaches(200);
    const inside = (path: string) => on.mesh.exec("machine", ["curl", "-sS", `localhost:8080/${path}`]);
    await inside("sick");
    await reaches(503);
    await inside("heal");
    await reaches(200);
    assert.equal((await on.echo("http://machines.example.com/")).pod, "machine");
  });

  test("EnvoyFilters with Lua and a local rate limit do what they say", async () => {
    const filter = (name: string, labels: object, configPatches: readonly object[]) => ({
      apiVersion: "networking.istio.io/v1alpha3",
      kind: "EnvoyFilter",
      metadata: { name, namespace: "default" },
      spec: { workloadSelector: { labels }, configPatches },
    });
    const beforeRouter = {
      context: "SIDECAR_INBOUND",
      listener: {
        filterChain: {
          filter: {
            name: "envoy.filters.network.http_connection_manager",
            subFilter: { name: "envoy.filters.http.router" },
          },
        },
      },
    };
    const lua = {
      name: "envoy.lua",
      typed_config: {
        "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
        inlineCode: 'function envoy_on_response(handle) handle:headers():add("x-lua", "was here") end',
      },
    };
    const limit = {
      name: "envoy.filters.http.local_ratelimit",
      typed_config: {
        "@type": "type.googleapis.com/udpa.type.v1.TypedStruct",
        type_url: "type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit",
        value: {
          stat_prefix: "limiter",
          token_bucket: { max_tokens: 5, tokens_per_fill: 5, fill_interval: "600s" },
          filter_enabled: { runtime_key: "on", default_value: { numerator: 100, denominator: "HUNDRED" } },
          filter_enforced: { runtime_key: "enforced", default_value: { numerator: 100, denominator: "HUNDRED" } },
        },
      },
    };
    const patch = (value: object) => ({
      applyTo: "HTTP_FILTER",
      match: beforeRouter,
      patch: { operation: "INSERT_BEFORE", value },
    });
    await using _ = await on.with(
      filter("lua", { version: "v1" }, [patch(lua)]),
      filter("limit", { version: "v2" }, [patch(limit)]),
      networking("DestinationRule", "echo", {
        host: "echo",
        subsets: ["v1", "v2"].map((name) => ({ name, labels: { version: name } })),
      }),
      networking("VirtualService", "echo", {
        hosts: ["echo"],
        http: ["v1", "v2"].map((subset) => ({
          match: [{ uri: { prefix: `/${subset}` } }],
          retries: { attempts: 0 },
          route: [{ destination: { host: "echo", subset, port: { number: 80 } } }],
        })),
      }),
    );
    assert.equal((await on.mesh.curl("client", "http://echo/v1")).headers["x-lua"], "was here");
    assert.deepEqual(Object.fromEntries(await on.pods(20, "http://echo/v2")), { "echo-2": 5, 429: 15 });
  });
});
