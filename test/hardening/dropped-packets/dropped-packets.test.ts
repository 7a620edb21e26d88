/** Servers that answer nothing at all: a firewall drops their packets, or their node is gone. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

interface Report {
  readonly ms: number;
  readonly text: string;
}

/** Addresses for documentation: no machine has them. */
const SILENT = "203.0.113.9";
const VANISHING = ["203.0.113.10", "203.0.113.11", "203.0.113.12"];
const REPORTED_MS = 6_000;

const IN_NAMESPACE = `
set -e
ip link set lo up
${[SILENT, ...VANISHING].map((address) => `ip address add ${address}/32 dev lo`).join("\n")}
nft add table inet filter
nft add chain inet filter input '{ type filter hook input priority 0; }'
nft add rule inet filter input ip daddr ${SILENT} drop
mount -t tmpfs tmpfs /mnt
touch /mnt/hosts
mount --bind /mnt/hosts /etc/hosts
exec "$0" "$@"
`;

/** Clients that call a server which is silent from the start, and what they say. */
const SILENT_SERVERS: Readonly<Record<string, readonly [name: string, report: RegExp]>> = {
  xds: ["an xDS server", /failed to connect to upstream 203\.0\.113\.9:15012: .*connection_failures 1$/s],
  grpcProxy: ["a proxy on the way to an xDS server", /No connection established to istiod\.test:15012/],
  istiodCa: ["istiod's CA", /warn\tca request failed, starting attempt 1 .*cannot be reached/],
  googleCa: ["Google's mesh CA", /warn\tca request failed, starting attempt 1 .*cannot be reached/],
  googleCas: ["Google's certificate authority service", /warn\tca request failed, .*cannot be reached/],
  kubernetes: ["an API server", /GET \/api: connect ETIMEDOUT/],
  kubernetesProxy: ["a proxy on the way to an API server", /through the proxy 203\.0\.113\.9:15012: connect ETIMEDOUT/],
  kubernetesList: ["an API server whose objects are followed", /GET \/api\/v1\/services: connect ETIMEDOUT/],
  jwks: ["a JWKS server", /cannot get .*connect ETIMEDOUT/],
  tokenIssuer: ["an issuer of callers' tokens", /cannot get .*timeout/],
  oci: ["an OCI registry", /connect ETIMEDOUT/],
  wasmOverHttp: ["a server of Wasm modules", /connect ETIMEDOUT/],
  wasmProxy: ["a proxy on the way to a server of Wasm modules", /through the proxy .*connect ETIMEDOUT/],
  sts: ["a token server", /no answer in 5000 ms/],
  metadata: ["a metadata server", /no answer in 5000 ms/],
  pages: ["a control plane whose pages a command reads", /connect ETIMEDOUT/],
  admin: ["Envoy's admin port", /no answer in 3000 ms/],
  scrape: ["a scrape target", /no answer in 3000 ms/],
  secureScrape: ["a scrape target with TLS", /no answer in 3000 ms/],
  probe: ["a probed application", /timeout/],
};

describe("a client of a server whose packets are dropped", { concurrency: true }, () => {
  let reports: Readonly<Record<string, Report>>;

  before(async () => {
    const program = fileURLToPath(import.meta.resolve("./clients.ts"));
    const isRoot = process.getuid?.() === 0;
    const apart = [...(isRoot ? [] : ["--user", "--map-root-user"]), "--net", "--mount", "--propagation", "private"];
    const command = ["sh", "-c", IN_NAMESPACE, process.execPath, program, SILENT, ...VANISHING];
    const { stdout } = await promisify(execFile)("unshare", [...apart, ...command], { timeout: 60_000 });
    reports = JSON.parse(stdout);
  });

  function reportOf(client: string): Report {
    const report = reports[client];
    assert.ok(report, client);
    return report;
  }

  for (const [client, [server, expected]] of Object.entries(SILENT_SERVERS)) {
    test(`reports ${server} that drops packets within 6 s`, () => {
      const { ms, text } = reportOf(client);
      assert.match(text, expected);
      assert.ok(ms < REPORTED_MS, `after ${ms} ms`);
    });
  }

  test("looks the name up again on the next attempt, and connects to the new address", () => {
    const { ms, text } = reportOf("repointedName");
    assert.match(text, /in time, then connected$/);
    assert.ok(ms < 2 * REPORTED_MS, `after ${ms} ms`);
  });

  test("notices by keepalive that the peer of an established xDS connection vanished", () => {
    assert.equal(reportOf("vanishedXds").text, "Keepalive timeout");
  });

  test("notices by probes of the kernel that the peer of a silent xDS connection vanished", () => {
    assert.equal(reportOf("vanishedSilentXds").text, "read ETIMEDOUT");
  });

  test("notices by keepalive that the API server of an established watch vanished", () => {
    assert.match(reportOf("vanishedWatch").text, /ETIMEDOUT/);
  });
});
