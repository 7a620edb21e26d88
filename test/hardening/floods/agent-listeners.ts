/** The agent's listeners, as a program of its own: 15020 (status), the token service, and 15004 (debug). Prints where they listen. */
import { SILENT } from "#lib/log/log.ts";
import { startStatusServer } from "../../../src/agent/status/server.ts";
import { statusOptions } from "../../../src/agent/status/status-fixture.ts";
import { serveSts } from "../../../src/agent/sts/server.ts";
import { startDebugTap } from "../../../src/agent/xds-proxy/debug-tap.ts";

const status = await startStatusServer(0, statusOptions().options);
const manager = {
  exchange: async () => ({ token: "t", expiresAt: Date.now() + 60_000 }),
  status: () => [],
};
const sts = await serveSts({ host: "127.0.0.1", port: 0, manager, log: SILENT }, new AbortController().signal);
// Nothing answers there: questions fail at once.
const upstream = {
  address: "127.0.0.1:1",
  rootCertificate: "",
  subjectAltName: "",
  headers: {},
  fetchToken: async () => "",
};
const tap = await startDebugTap({ host: "127.0.0.1", port: 0, upstream, namespace: "default" });
console.log(`15020 at ${status.port}\nsts at ${sts}\n15004 at ${tap.port}\nready`);
