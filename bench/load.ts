/** One run: connect all sidecars, then change endpoints, a route and services, and see what each costs. */
import { MessageWriter } from "#lib/wire/write.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "#protocol/messages/type-urls.ts";
import type { ControlPlaneProcess } from "./control-plane-process.ts";
import { envoyAnswerMs } from "./envoy-answer.ts";
import { type MeshFolder, type MeshShape, serviceHost } from "./mesh-folder.ts";
import { percentile } from "./percentile.ts";
import { Sidecars } from "./sidecars.ts";

/** What one kind of change costs. */
export interface ChangeFigures {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMs: number;
  readonly kilobytesPerProxy: number;
}

export interface Figures {
  readonly connectSeconds: number;
  readonly connectCpuSeconds: number;
  readonly connectMegabytes: number;
  readonly endpoint: ChangeFigures;
  readonly route: ChangeFigures;
  readonly service: ChangeFigures;
  readonly privateMegabytes: number;
  /** How late the event loop was, 99 of 100 times, from connecting on; and while endpoints changed 100 times a second. */
  readonly loopDelayMs?: number;
  readonly churn?: ChurnFigures;
  /** Of a real Envoy to a change of its routes, where the proxies are routers. */
  readonly envoyAnswerMs?: number;
}

/** What a flood of endpoint changes costs. */
export interface ChurnFigures {
  readonly changesPerSecond: number;
  /** CPU seconds of a second. */
  readonly cpu: number;
  readonly loopDelayMs: number;
  /** Until all proxies have the last of the changes. */
  readonly lastMs: number;
}

export interface Load {
  readonly shape: MeshShape;
  readonly mesh: MeshFolder;
  readonly controlPlane: ControlPlaneProcess;
  readonly rounds: number;
  readonly settleMs: number;
}

export async function runLoad(load: Load): Promise<Figures> {
  const { shape, mesh, controlPlane } = load;
  using sidecars = new Sidecars(controlPlane.address, shape, controlPlane.access);
  await controlPlane.loopDelayMs();
  const connected = await connect(load, sidecars);
  const change = (typeUrl: string, act: (round: number) => Buffer) => rounds(load, sidecars, { typeUrl, act });
  const endpoint = await change(ENDPOINT_TYPE, (round) => {
    const address = `10.${100 + round}.1.77`;
    mesh.putService(3, address);
    return Buffer.from(address);
  });
  const route = await change(ROUTE_TYPE, (round) => {
    mesh.putRoute(10, 1_000 + round);
    return Buffer.from(new MessageWriter().varint(1, 1_000 + round).finish()); // seconds of a Duration
  });
  const service = await change(CLUSTER_TYPE, (round) => {
    mesh.putService(shape.services + round, "10.3.0.1");
    return Buffer.from(serviceHost(shape.services + round));
  });
  const loopDelayMs = await controlPlane.loopDelayMs();
  const privateMegabytes = controlPlane.privateMegabytes();
  const churn = await churned(load, sidecars);
  const envoyAnswer =
    shape.routes === undefined ? {} : { envoyAnswerMs: await envoyAnswerMs(controlPlane, mesh, load.rounds) };
  if (sidecars.failures.length > 0) throw new Error(`streams ended: ${sidecars.failures.join()}`);
  return { ...connected, endpoint, route, service, privateMegabytes, loopDelayMs, churn, ...envoyAnswer };
}

const CHURN_SECONDS = 5;
const CHURN_EVERY_MS = 10;

/** One endpoint after the other changes, as in a rollout of everything. */
async function churned({ shape, mesh, controlPlane }: Load, sidecars: Sidecars): Promise<ChurnFigures> {
  await controlPlane.loopDelayMs();
  const [cpu, start] = [controlPlane.cpuSeconds(), performance.now()];
  const seconds = () => (performance.now() - start) / 1000;
  let changes = 0;
  while (seconds() < CHURN_SECONDS) {
    mesh.putService(changes % shape.services, `10.${50 + (changes >> 8)}.2.${changes & 255}`);
    changes++;
    await settle(Math.max(0, changes * CHURN_EVERY_MS - seconds() * 1000));
  }
  const changesPerSecond = changes / seconds();
  const last = "10.49.2.1";
  const latencies = sidecars.everyone(ENDPOINT_TYPE, Buffer.from(last));
  mesh.putService(changes % shape.services, last);
  const lastMs = Math.max(...(await latencies));
  const loopDelayMs = await controlPlane.loopDelayMs();
  return { changesPerSecond, cpu: (controlPlane.cpuSeconds() - cpu) / seconds(), loopDelayMs, lastMs };
}

async function connect({ controlPlane, settleMs }: Load, sidecars: Sidecars) {
  const cpu = controlPlane.cpuSeconds();
  const start = performance.now();
  const types = [CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE];
  const all = types.map((typeUrl) => sidecars.everyone(typeUrl, Buffer.alloc(0), 180_000));
  sidecars.connect();
  await Promise.all(all);
  const connectSeconds = (performance.now() - start) / 1000;
  await settle(settleMs);
  const connectMegabytes = sidecars.receivedBytes / 1e6;
  return { connectSeconds, connectCpuSeconds: controlPlane.cpuSeconds() - cpu, connectMegabytes };
}

interface Change {
  readonly typeUrl: string;
  /** Changes the mesh; what sidecars then find in a response. */
  readonly act: (round: number) => Buffer;
}

async function rounds({ controlPlane, shape, rounds: count, settleMs }: Load, sidecars: Sidecars, change: Change) {
  const latencies: number[] = [];
  const bytes = sidecars.receivedBytes;
  let cpu = 0;
  for (let round = 0; round < count; round++) {
    const before = controlPlane.cpuSeconds();
    latencies.push(...(await sidecars.everyone(change.typeUrl, change.act(round))));
    await settle(settleMs);
    cpu += controlPlane.cpuSeconds() - before;
  }
  return {
    p50Ms: percentile(latencies, 0.5),
    p99Ms: percentile(latencies, 0.99),
    cpuMs: (cpu * 1000) / count,
    kilobytesPerProxy: (sidecars.receivedBytes - bytes) / 1024 / shape.proxies / count,
  };
}

/** CPU time of a push counts until the control plane is quiet again; how long that takes is what is measured. */
function settle(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
