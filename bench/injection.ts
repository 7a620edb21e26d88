/** Time to inject a pod over TLS, asked for at a steady pace as an API server would. */
import { Agent, request } from "node:https";
import { setTimeout as wait } from "node:timers/promises";
import { testInjector } from "#inject/injector/fixture.ts";
import { WebhookListener } from "#webhooks/webhook-listener.ts";
import { selfSigned } from "../test/support/certificates.ts";
import { percentile } from "./percentile.ts";

export interface InjectionLoad {
  readonly perSecond: number;
  readonly seconds: number;
}

export interface InjectionTimes {
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMsEach: number;
}

const NAME = "istiod.istio-system.svc";

/** Serves and asks in this process; CPU time is that of both. */
export async function measureInjection({ perSecond, seconds }: InjectionLoad): Promise<InjectionTimes> {
  const { certificate, key } = selfSigned(NAME);
  const injector = testInjector();
  const listener = new WebhookListener({
    flag: "--httpsAddr",
    address: { host: "127.0.0.1", port: 0 },
    identity: { current: () => ({ certificates: certificate, key, clientRoots: "" }), subscribe: () => () => {} },
    injection: () => ({ injector, proxyConfigs: [], nativeSidecars: () => true }),
    count: () => {},
    log: () => {},
    readiness: () => ({ status: 200, body: "" }),
    onInjectionTime: () => {},
    now: () => performance.now(),
  });
  const port = Number((await listener.start()).split(":").at(-1));
  const agent = new Agent({ keepAlive: true, ca: certificate, servername: NAME });
  const send = () => sendReview({ agent, port });
  try {
    for (let round = 0; round < perSecond; round++) await send();
    const cpu = process.cpuUsage();
    const times = await atPace(send, perSecond, perSecond * seconds);
    const { user, system } = process.cpuUsage(cpu);
    return {
      p50Ms: percentile(times, 0.5),
      p99Ms: percentile(times, 0.99),
      cpuMsEach: (user + system) / 1000 / times.length,
    };
  } finally {
    agent.destroy();
    await listener.stop(0);
  }
}

/** Starts one each time one is due, whether or not those before it are done. */
async function atPace(send: () => Promise<number>, perSecond: number, count: number): Promise<readonly number[]> {
  const start = performance.now();
  const running: Promise<number>[] = [];
  for (let index = 0; index < count; index++) {
    await wait(Math.max(0, start + (index * 1000) / perSecond - performance.now()));
    running.push(send());
  }
  return Promise.all(running);
}

function sendReview({ agent, port }: { readonly agent: Agent; readonly port: number }): Promise<number> {
  const start = performance.now();
  const options = { agent, host: "127.0.0.1", port, path: "/inject", method: "POST" };
  return new Promise((resolve, reject) => {
    const sent = request({ ...options, headers: { "content-type": "application/json" } }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", () => {
        if (!Buffer.concat(chunks).includes('"patchType":"JSONPatch"')) reject(new Error("a pod was not injected"));
        else resolve(performance.now() - start);
      });
    });
    sent.on("error", reject);
    sent.end(REVIEW);
  });
}

/** A pod as a Deployment makes it: two containers, probes, volumes, metrics. */
const REVIEW = JSON.stringify({
  kind: "AdmissionReview",
  apiVersion: "admission.k8s.io/v1",
  request: {
    uid: "5f5a9a3e-1c9d-4b6e-9f0e-7a3b1c2d4e5f",
    namespace: "shop",
    operation: "CREATE",
    object: {
      metadata: {
        generateName: "cart-7c9d8f6b5-",
        labels: { app: "cart", version: "v1", "pod-template-hash": "7c9d8f6b5" },
        annotations: { "prometheus.io/port": "9090", "prometheus.io/scrape": "true" },
        ownerReferences: [
          { apiVersion: "apps/v1", kind: "ReplicaSet", name: "cart-7c9d8f6b5", uid: "u", controller: true },
        ],
      },
      spec: {
        serviceAccountName: "cart",
        volumes: [{ name: "settings", configMap: { name: "cart" } }],
        containers: ["cart", "cache"].map((name, index) => ({
          name,
          image: `shop/${name}:1.2.3`,
          ports: [{ name: "http", containerPort: 8080 + index, protocol: "TCP" }],
          env: Array.from({ length: 20 }, (_, at) => ({ name: `SETTING_${at}`, value: `value ${at}` })),
          resources: { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "256Mi" } },
          volumeMounts: [{ name: "settings", mountPath: "/etc/settings" }],
          readinessProbe: { httpGet: { path: "/ready", port: "http" } },
          livenessProbe: { httpGet: { path: "/alive", port: 8080 + index } },
        })),
      },
    },
  },
});
