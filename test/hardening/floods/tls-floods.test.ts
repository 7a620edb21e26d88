/** Floods of TLS on the ports of the control plane, and the attacks of the audit on 15010 and 15012. */
import { connect } from "node:http2";
import { after, before, describe, test } from "node:test";
import { CREATE_CERTIFICATE } from "#ca/service/certificate-service.ts";
import { partOfMessage } from "../../support/http2-frames.ts";
import { FloodedControlPlane } from "./control-plane-process.ts";
import { withstands } from "./flood-check.ts";
import { TLS_FLOODS } from "./tls-floods.ts";

const XDS = "/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources";

describe("floods on TLS", () => {
  let controlPlane: FloodedControlPlane;
  before(async () => {
    controlPlane = await FloodedControlPlane.start();
  });
  after(() => controlPlane[Symbol.asyncDispose]());

  const check = () => ({
    process: controlPlane.process,
    probe: controlPlane.probe,
    isServed: () => controlPlane.servesTls(),
  });

  for (const port of ["15012", "15017"] as const) {
    for (const flood of TLS_FLOODS) {
      test(`${port} withstands ${flood.name}`, () =>
        withstands(check(), (endAt) => flood.run(controlPlane.port(port), endAt)));
    }
  }

  /** Streams on several connections, with or without most of a message. */
  async function streams(
    url: string,
    calls: { path: string; count: number; each: number; part?: Buffer; token?: string },
  ) {
    const sessions = Array.from({ length: calls.count / calls.each }, () => {
      const session = connect(url, { rejectUnauthorized: false });
      session.on("error", () => undefined);
      const head = { ":method": "POST", ":path": calls.path, "content-type": "application/grpc", te: "trailers" };
      const proof = calls.token === undefined ? {} : { authorization: `Bearer ${calls.token}` };
      for (let i = 0; i < calls.each; i++) {
        const stream = session.request({ ...head, ...proof }).on("error", () => undefined);
        stream.write(calls.part ?? Buffer.alloc(0));
      }
      return session;
    });
    return (endAt: number) =>
      new Promise<void>((resolve) => {
        setTimeout(
          () => {
            for (const session of sessions) session.destroy();
            resolve();
          },
          Math.max(0, endAt - performance.now()),
        );
      });
  }

  const plain = () => `http://127.0.0.1:${controlPlane.port("15010")}`;
  const secure = () => `https://127.0.0.1:${controlPlane.port("15012")}`;
  const part = partOfMessage(4_000_000, 3_900_000);

  test("15012 withstands 60 half-sent requests of 4 MB for certificates", () =>
    withstands(check(), async (endAt) =>
      (await streams(secure(), { path: CREATE_CERTIFICATE, count: 60, each: 60, part }))(endAt),
    ));

  test("15012 withstands 60 half-sent requests of 4 MB by an authenticated caller", async () => {
    const token = await controlPlane.token();
    await withstands(check(), async (endAt) =>
      (await streams(secure(), { path: XDS, count: 60, each: 60, part, token }))(endAt),
    );
  });

  test("1,000 silent streams on 15010 keep nobody off 15012 and 15010", () => {
    const isServed = async () => {
      await controlPlane.servesTls();
      await controlPlane.servesPlainText();
    };
    return withstands({ ...check(), isServed }, async (endAt) =>
      (await streams(plain(), { path: XDS, count: 1_000, each: 100 }))(endAt),
    );
  });
});
