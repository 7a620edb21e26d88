/** Another program that measures the same from outside, where it is at hand. */
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { ControlPlaneProcess } from "./control-plane-process.ts";
import type { ChangeFigures, Figures } from "./load.ts";
import type { MeshShape } from "./mesh-folder.ts";

export interface Referee {
  readonly program: string;
  /** A folder whose node_modules has grpc-js. */
  readonly modules: string;
}

export interface RefereedRun {
  readonly shape: MeshShape;
  readonly rounds: number;
  readonly config: string;
  readonly controlPlane: ControlPlaneProcess;
}

interface ChangeReport {
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly cpu_ms_per_push: number;
  readonly kb_per_proxy: number;
}

/** Runs it against that control plane. */
export async function refereed({ program, modules }: Referee, run: RefereedRun): Promise<Figures> {
  const { shape, rounds, config, controlPlane } = run;
  const { access } = controlPlane;
  const token = join(dirname(config), "token");
  if (access !== undefined) writeFileSync(token, await access.callers.token("default"));
  const options = {
    modules,
    addr: controlPlane.address,
    conf: config,
    pid: controlPlane.pid,
    proxies: shape.proxies,
    services: shape.services,
    rounds,
    ...(shape.own && { own: 1 }),
    ...(access !== undefined && { root: access.rootFile, token }),
  };
  const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, `${value}`]);
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...flags]);
  const report = JSON.parse(stdout);
  return {
    connectSeconds: report.connect_s,
    connectCpuSeconds: report.connect_cpu_s,
    connectMegabytes: report.connect_mb,
    endpoint: change(report.endpoint),
    route: change(report.route),
    service: change(report.service),
    privateMegabytes: report.rss_anon_mb,
  };
}

function change(report: ChangeReport): ChangeFigures {
  const { p50_ms: p50Ms, p99_ms: p99Ms, cpu_ms_per_push: cpuMs, kb_per_proxy: kilobytesPerProxy } = report;
  return { p50Ms, p99Ms, cpuMs, kilobytesPerProxy };
}
