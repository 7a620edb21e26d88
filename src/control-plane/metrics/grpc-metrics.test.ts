import assert from "node:assert/strict";
import { test } from "node:test";
import { GrpcError, STATUS } from "#lib/grpc/status.ts";
import { Metrics } from "#lib/metrics/metrics.ts";
import { countedCalls, GRPC_METRICS } from "./grpc-metrics.ts";

const PATH = "/istio.v1.auth.IstioCertificateService/CreateCertificate";
const LABELS = 'grpc_type="unary",grpc_service="istio.v1.auth.IstioCertificateService",grpc_method="CreateCertificate"';

test("calls are counted by service, method and how they ended", async () => {
  const metrics = new Metrics(GRPC_METRICS);
  let now = 0;
  const counted = countedCalls(metrics, () => now);
  const answer = await counted(PATH, async () => {
    now += 30;
    return "yes";
  });
  assert.equal(answer, "yes");
  const refused = new GrpcError(STATUS.UNAUTHENTICATED, "no");
  await assert.rejects(
    counted(PATH, () => Promise.reject(refused)),
    refused,
  );
  await assert.rejects(counted(PATH, () => Promise.reject(new Error("broken"))));
  const { text } = await metrics.read();
  for (const line of [
    `grpc_server_started_total{${LABELS}} 3`,
    `grpc_server_msg_received_total{${LABELS}} 3`,
    `grpc_server_msg_sent_total{${LABELS}} 1`,
    `grpc_server_handled_total{${LABELS},grpc_code="OK"} 1`,
    `grpc_server_handled_total{${LABELS},grpc_code="Unauthenticated"} 1`,
    `grpc_server_handled_total{${LABELS},grpc_code="Unknown"} 1`,
    `grpc_server_handling_seconds_bucket{le="0.05",${LABELS}} 3`,
    `grpc_server_handling_seconds_bucket{le="0.025",${LABELS}} 2`,
  ]) {
    assert.ok(text.includes(`${line}\n`), `${line} is not in\n${text}`);
  }
});
