import assert from "node:assert/strict";
import { test } from "node:test";
import { growthPlot } from "./growth-plot.ts";

test("growthPlot() draws a line for each figure, on one scale for all panels", () => {
  const point = (size: number, cpu: number) => ({
    size,
    connectCpu: cpu,
    endpointCpu: 0,
    routeCpu: 100,
    serviceCpu: 0,
  });
  const svg = growthPlot([
    { title: "proxies", unit: "proxies", points: [point(1, 1), point(2, 4)] },
    { title: "services", unit: "services", points: [point(1, 1), point(2, 2)] },
  ]);
  assert.equal(svg.match(/fill="none" stroke="#1b6ca8"/g)?.length, 2);
  assert.match(svg, /M176 179L306 44" fill="none" stroke="#1b6ca8"/);
  assert.match(svg, /<text [^>]*>4<\/text>/);
});
