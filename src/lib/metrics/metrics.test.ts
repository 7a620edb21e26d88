import assert from "node:assert/strict";
import { test } from "node:test";
import { Metrics } from "./metrics.ts";

const DEFINITIONS = {
  pilot_xds_pushes: { type: "counter", help: "pushes", labels: ["type"] },
  pilot_services: { type: "gauge", help: 'services "known"\nnow' },
  pilot_xds: { type: "gauge", help: "clients", labels: ["version"] },
  pilot_proxy_convergence_time: { type: "histogram", help: "delay", buckets: [0.1, 1] },
} as const;

async function samples(metrics: Metrics): Promise<readonly string[]> {
  const { text } = await metrics.read();
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

test("Metrics counts, sets and observes", async () => {
  const metrics = new Metrics(DEFINITIONS);
  metrics.count("pilot_xds_pushes", { type: "cds" });
  metrics.count("pilot_xds_pushes", { type: "cds" }, 2);
  metrics.set("pilot_services", 7);
  metrics.observe("pilot_proxy_convergence_time", 0.5);
  assert.deepEqual(await samples(metrics), [
    'pilot_xds_pushes{type="cds"} 3',
    "pilot_services 7",
    'pilot_proxy_convergence_time_bucket{le="0.1"} 0',
    'pilot_proxy_convergence_time_bucket{le="1"} 1',
    'pilot_proxy_convergence_time_bucket{le="+Inf"} 1',
    "pilot_proxy_convergence_time_sum 0.5",
    "pilot_proxy_convergence_time_count 1",
  ]);
});

test("Metrics tells each series of a histogram apart by its labels", async () => {
  const metrics = new Metrics({
    size: { type: "histogram", help: "of\nwhat", labels: ["type", "of"], buckets: [1, 2] },
  });
  for (const value of [1, 2, 3]) metrics.observe("size", value, { type: 'a"b\\', of: "x" });
  metrics.observe("size", 0.5, { type: "c" });
  assert.equal(
    (await metrics.read()).text.trimStart(),
    [
      "# HELP size of\\nwhat",
      "# TYPE size histogram",
      'size_bucket{le="1",type="a\\"b\\\\",of="x"} 1',
      'size_bucket{le="2",type="a\\"b\\\\",of="x"} 2',
      'size_bucket{le="+Inf",type="a\\"b\\\\",of="x"} 3',
      'size_sum{type="a\\"b\\\\",of="x"} 6',
      'size_count{type="a\\"b\\\\",of="x"} 3',
      'size_bucket{le="1",type="c",of=""} 1',
      'size_bucket{le="2",type="c",of=""} 1',
      'size_bucket{le="+Inf",type="c",of=""} 1',
      'size_sum{type="c",of=""} 0.5',
      'size_count{type="c",of=""} 1',
      "",
    ].join("\n"),
  );
  assert.throws(() => metrics.observe("size", Number.NaN, { type: "c" }), /cannot observe NaN/);
});

test("Metrics computes a gauge when it is read and forgets values that are gone", async () => {
  const metrics = new Metrics(DEFINITIONS);
  let clients = [
    { value: 2, labels: { version: "1.29.6" } },
    { value: 1, labels: { version: 'odd"one\\' } },
  ];
  metrics.compute("pilot_xds", () => clients);
  const xds = async () => (await samples(metrics)).filter((line) => line.startsWith("pilot_xds{"));
  assert.deepEqual(await xds(), ['pilot_xds{version="1.29.6"} 2', 'pilot_xds{version="odd\\"one\\\\"} 1']);
  clients = clients.slice(0, 1);
  assert.deepEqual(await xds(), ['pilot_xds{version="1.29.6"} 2']);
});

test("Metrics refuses a name of another type", () => {
  const metrics = new Metrics(DEFINITIONS);
  assert.throws(() => metrics.set("pilot_xds_pushes", 1), /no such metric of this type: pilot_xds_pushes/);
});

test("Metrics of the process tell how late the event loop was since they were read last", async () => {
  const metrics = new Metrics(DEFINITIONS, { process: true });
  const most = async () => Number(/^nodejs_eventloop_lag_max_seconds (\S+)$/m.exec((await metrics.read()).text)?.[1]);
  for (const end = performance.now() + 400; performance.now() < end; );
  await new Promise((resolve) => setTimeout(resolve, 1));
  assert.ok((await most()) >= 0.1);
  assert.ok((await most()) < 0.1);
});

test("Metrics of the process tell the delay of the event loop, and every line is valid exposition", async () => {
  const metrics = new Metrics(DEFINITIONS, { process: true });
  metrics.set("pilot_xds", 1, { version: "unknown" });
  const { text, contentType } = await metrics.read();
  assert.match(contentType, /^text\/plain; version=0\.0\.4/);
  assert.match(text, /^nodejs_eventloop_lag_p99_seconds \S+$/m);
  const valid =
    /^(# HELP [a-zA-Z_:]\w* .*|# TYPE [a-zA-Z_:]\w* (counter|gauge|histogram|summary)|[a-zA-Z_:]\w*(\{([a-zA-Z_]\w*="([^"\\\n]|\\.)*",?)*\})? (-?[\d.]+(e[+-]?\d+)?|NaN|[+-]Inf))?$/;
  for (const line of text.split("\n")) assert.match(line, valid);
});
