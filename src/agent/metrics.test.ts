import assert from "node:assert/strict";
import { test } from "node:test";
import { agentMetrics } from "./metrics.ts";

test("agentMetrics() counts, and writes each family once with help and type", () => {
  const metrics = agentMetrics();
  metrics.xdsRequests.add();
  metrics.xdsRequests.add(2);
  metrics.istiodTerminations.error.add();
  metrics.dnsUpstreamSeconds.observe(0.004);
  metrics.dnsUpstreamSeconds.observe(9);
  const text = metrics.text();
  assert.match(
    text,
    /# HELP istio_agent_xds_proxy_requests .*\n# TYPE istio_agent_xds_proxy_requests counter\nistio_agent_xds_proxy_requests 3\n/,
  );
  assert.match(text, /terminations{type="cancelled"} 0\nistio_agent_istiod_connection_terminations{type="error"} 1\n/);
  assert.match(
    text,
    /_bucket{le="0\.001"} 0\n.*_bucket{le="0\.005"} 1\n[\s\S]*_bucket{le="\+Inf"} 2\n.*_sum 9\.004\n.*_count 2\n/,
  );
  assert.equal(text.match(/# TYPE istio_agent_scrape_failures_total/g)?.length, 1);
});

test("agentMetrics() leaves out a gauge that has no value yet", () => {
  const metrics = agentMetrics();
  assert.doesNotMatch(metrics.text(), /cert_expiry_seconds|startup_duration_seconds/);
  metrics.certificateExpiry = () => 12.5;
  metrics.startupSeconds = 0.4;
  assert.match(metrics.text(), /istio_agent_cert_expiry_seconds{resource_name="default"} 12\.5\n/);
  assert.match(metrics.text(), /istio_agent_startup_duration_seconds 0\.4\n/);
});
