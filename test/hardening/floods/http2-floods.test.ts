/** Floods on the HTTP/2 ports of the control plane. */
import { after, before, describe, test } from "node:test";
import { CREATE_CERTIFICATE } from "#ca/service/certificate-service.ts";
import { FloodedControlPlane } from "./control-plane-process.ts";
import { withstands } from "./flood-check.ts";
import { HTTP2_FLOODS } from "./http2-floods.ts";

const XDS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";
const LISTENERS = [
  { port: "15010", isTls: false, path: XDS },
  { port: "15012", isTls: true, path: CREATE_CERTIFICATE },
] as const;

describe("floods on HTTP/2", () => {
  let controlPlane: FloodedControlPlane;
  before(async () => {
    controlPlane = await FloodedControlPlane.start();
  });
  after(() => controlPlane[Symbol.asyncDispose]());

  for (const { port, isTls, path } of LISTENERS) {
    for (const flood of HTTP2_FLOODS) {
      test(`${port} withstands ${flood.name}`, async () => {
        const { process, probe } = controlPlane;
        const isServed = async () => {
          await controlPlane.servesTls();
          if (!isTls) await controlPlane.servesPlainText();
        };
        const target = { port: controlPlane.port(port), isTls };
        await withstands({ process, probe, isServed }, (endAt) => flood.run(target, path, endAt));
      });
    }
  }
});
