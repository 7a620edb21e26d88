/** A real agent in a process of its own, with a program that does nothing in place of Envoy, and a real control plane beside it. Needs root, for its own resolv.conf. */
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SignJWT } from "jose";
import { writePodFiles } from "../../support/agent-process.ts";
import { freePorts } from "../../support/free-ports.ts";
import { type MeasuredControlPlane, startControlPlane } from "./control-plane-fixture.ts";
import { MeasuredProgram } from "./measured-program.ts";

const PROGRAM = join(import.meta.dirname, "../../../src/bin/pilot-agent.ts");
/** Questions about names outside of the mesh must not leave this machine: nobody answers at this name server. */
const RESOLV_CONF = "nameserver 127.0.0.1\n";
const WITH_RESOLV_CONF = [
  "unshare",
  "--mount",
  "--propagation=private",
  "sh",
  "-c",
  'mount --bind "$0" /etc/resolv.conf && exec "$@"',
];

/** Its end follows that of the agent. */
const IDLE_ENVOY = `#!/bin/sh
case "$*" in *--version* | *validate*) exit 0 ;; esac
exec setpriv --pdeathsig KILL sleep 3600
`;

export interface MeasuredAgent extends AsyncDisposable {
  readonly program: MeasuredProgram;
  readonly plane: MeasuredControlPlane;
  readonly ports: { readonly status: number; readonly debug: number; readonly dns: number; readonly sts: number };
  /** Unix sockets. */
  readonly xds: string;
  readonly sds: string;
}

export async function startAgent(): Promise<MeasuredAgent> {
  const folder = mkdtempSync(join(tmpdir(), "growth-agent-"));
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwks = JSON.stringify({ keys: [{ ...publicKey.export({ format: "jwk" }), kid: "k" }] });
  const plane = await startControlPlane({ JWT_RULE: JSON.stringify({ issuer: "test", jwks }) });
  writePodFiles(folder, readFileSync(plane.rootFile, "utf8"));
  const token = new SignJWT({ sub: "system:serviceaccount:default:httpbin" })
    .setProtectedHeader({ alg: "ES256", kid: "k" })
    .setIssuer("test")
    .setAudience("istio-ca")
    .setExpirationTime("1h");
  writeFileSync(join(folder, "var/run/secrets/tokens/istio-token"), await token.sign(privateKey));
  writeFileSync(join(folder, "resolv.conf"), RESOLV_CONF);
  const [status = 0, debug = 0, dns = 0, sts = 0, admin = 0] = await freePorts(5);
  const envoy = join(folder, "envoy");
  writeFileSync(envoy, IDLE_ENVOY, { mode: 0o755 });
  const discoveryAddress = `127.0.0.1:${plane.ports.secureGrpc}`;
  const program = new MeasuredProgram(PROGRAM, ["proxy", "sidecar", `--stsPort=${sts}`], {
    cwd: folder,
    through: [...WITH_RESOLV_CONF, join(folder, "resolv.conf")],
    env: {
      POD_NAME: "httpbin-1",
      POD_NAMESPACE: "default",
      SERVICE_ACCOUNT: "httpbin",
      INSTANCE_IP: "127.0.0.1",
      CLOUD_PLATFORM: "none",
      ISTIO_META_DNS_CAPTURE: "true",
      DNS_PROXY_ADDR: `127.0.0.1:${dns}`,
      PROXY_XDS_DEBUG_VIA_AGENT_PORT: String(debug),
      PROXY_CONFIG: JSON.stringify({ discoveryAddress, statusPort: status, proxyAdminPort: admin, binaryPath: envoy }),
    },
  });
  await program.printed(/DNS server on 127\.0\.0\.1:(\d+)/);
  await program.printed(/Opening status port (\d+)/);
  return {
    program,
    plane,
    ports: { status, debug, dns, sts },
    xds: join(folder, "etc/istio/proxy/XDS"),
    sds: join(folder, "var/run/secrets/workload-spiffe-uds/socket"),
    [Symbol.asyncDispose]: async () => {
      await program[Symbol.asyncDispose]();
      await plane[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}
