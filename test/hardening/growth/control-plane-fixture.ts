/** A real control plane in a process of its own, with some services, and its ports. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../support/free-ports.ts";
import { MeasuredProgram } from "./measured-program.ts";

const PROGRAM = join(import.meta.dirname, "../../../src/bin/pilot-discovery.ts");
const ADDRESSES = ["http", "https", "grpc", "secureGRPC", "monitoring"];
const SERVICES = 300;

export interface ControlPlanePorts {
  readonly http: number;
  readonly monitoring: number;
  readonly grpc: number;
  readonly secureGrpc: number;
  readonly webhook: number;
  readonly controlz: number;
}

export interface MeasuredControlPlane extends AsyncDisposable {
  readonly program: MeasuredProgram;
  readonly ports: ControlPlanePorts;
  /** Folder of the configuration. */
  readonly config: string;
  /** PEM of the mesh's root. */
  readonly rootFile: string;
}

export async function startControlPlane(env: Readonly<Record<string, string>> = {}): Promise<MeasuredControlPlane> {
  const folder = mkdtempSync(join(tmpdir(), "growth-"));
  const config = join(folder, "config");
  mkdirSync(config);
  writeFileSync(join(config, "services.yaml"), services());
  const listen = ADDRESSES.map((name) => `--${name}Addr=127.0.0.1:0`);
  const controlz = await freePort();
  const flags = [
    "--registries=",
    "--configDir",
    config,
    `--ctrlz_port=${controlz}`,
    "--shutdownDuration=0s",
    ...listen,
  ];
  const program = new MeasuredProgram(PROGRAM, ["discovery", ...flags], {
    cwd: folder,
    env: { ROOT_CA_DIR: join(folder, "ca"), ...env },
  });
  await program.printed(/control plane is ready/);
  const port = async (what: string) => Number(await program.printed(new RegExp(`starting ${what} at \\S*:(\\d+)`)));
  const ports = {
    http: await port("HTTP service"),
    monitoring: await port("monitoring service"),
    grpc: await port("gRPC discovery service"),
    secureGrpc: await port("secure gRPC discovery service"),
    webhook: await port("webhook service"),
    controlz,
  };
  return {
    program,
    ports,
    config,
    rootFile: join(folder, "ca/root-cert.pem"),
    [Symbol.asyncDispose]: async () => {
      await program[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

function services(): string {
  return Array.from({ length: SERVICES }, (_, i) =>
    [
      "apiVersion: networking.istio.io/v1",
      "kind: ServiceEntry",
      `metadata: {name: s${i}, namespace: default}`,
      "spec:",
      `  hosts: [s${i}.example.com]`,
      `  addresses: [10.2.${i >> 8}.${i & 255}]`,
      "  ports: [{number: 80, name: http, protocol: HTTP}]",
      "  resolution: STATIC",
      `  endpoints: [{address: 10.1.${i >> 8}.${i & 255}}]`,
    ].join("\n"),
  ).join("\n---\n");
}
