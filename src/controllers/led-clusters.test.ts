import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, type KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { createLogger } from "#lib/log/log.ts";
import { leadClusters } from "./led-clusters.ts";

/** An API server whose control plane namespace has an annotation, or that answers with an error. */
function server(answer: string | ApiError): Pick<KubernetesApi, "call"> {
  const annotations = { "topology.istio.io/controlPlaneClusters": String(answer) };
  return {
    call: async <Answer>() => {
      if (answer instanceof ApiError) throw answer;
      return { metadata: { name: "istio-system", annotations } } as Answer;
    },
  };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

test("clusters that name ours are led, as long as they are there", async () => {
  const gone = new ApiError("no", { status: 404, reason: "NotFound" });
  const clusters = new Map([
    ["named", server("c1,c5")],
    ["any", server("*")],
    ["other", server("c2")],
    ["without", server(gone)],
  ]);
  const led = new Set<string>();
  let changed = () => {};
  const stopping = new AbortController();
  const running = leadClusters(
    {
      clusters: () => clusters,
      onClusters: (call) => {
        changed = call;
        return () => {};
      },
      clusterId: "c1",
      namespace: "istio-system",
      lead: async (_api, id, signal) => {
        led.add(id);
        await new Promise((resolve) => signal.addEventListener("abort", resolve));
        led.delete(id);
      },
      log: createLogger({ write: () => {} }),
    },
    stopping.signal,
  );
  await settled();
  assert.deepEqual([...led], ["named", "any"]);
  clusters.delete("named");
  clusters.set("next", server("*"));
  changed();
  await settled();
  assert.deepEqual([...led], ["any", "next"]);
  stopping.abort();
  await running;
  assert.deepEqual([...led], []);
});
