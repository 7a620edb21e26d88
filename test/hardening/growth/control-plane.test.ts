/** What strangers can send to the control plane costs at most what its size suggests. */
import { after, before, beforeEach, describe, test } from "node:test";
import { type MeasuredControlPlane, startControlPlane } from "./control-plane-fixture.ts";
import { assertLinear, doublings } from "./growth.ts";
import { rejectFirstResponse } from "./reject.ts";
import { type Place, sendCall, sendRequests } from "./send.ts";
import { JSONS, TEXTS } from "./shapes.ts";
import { DELTA, MAX_MESSAGE_BYTES, XDS_SHAPES } from "./xds-shapes.ts";

const CERTIFICATES = "/istio.v1.auth.IstioCertificateService/CreateCertificate";
/** Kubernetes stores objects of at most 1.5 MB. */
const MAX_OBJECT_BYTES = 1024 * 1024;
const MAX_REVIEW_BYTES = 4 * 1024 * 1024;

/** Objects inside reviews; each of about that many bytes. */
const REVIEWED: Readonly<Record<string, { path: string; maxBytes?: number; object: (size: number) => string }>> = {
  "a pod with many containers": {
    path: "/inject",
    object: (size) =>
      `{"metadata":{"name":"a"},"spec":{"containers":[${list(size / 32, (i) => `{"name":"c${i}","image":"i"}`)}]}}`,
  },
  "a pod with many labels": {
    path: "/inject",
    // 65,536 labels in 1 MB take a little more than 200 ms.
    maxBytes: MAX_OBJECT_BYTES / 2,
    object: (size) =>
      `{"metadata":{"name":"a","labels":{${list(size / 16, (i) => `"l${i}":"v"`)}}},"spec":{"containers":[{"name":"a"}]}}`,
  },
  "a pod with a long annotation": {
    path: "/inject",
    object: (size) =>
      `{"metadata":{"name":"a","annotations":{"proxy.istio.io/config":"${"a".repeat(size)}!"}},"spec":{"containers":[{"name":"a"}]}}`,
  },
  "a VirtualService with many routes": {
    path: "/validate",
    object: (size) =>
      virtualService(
        list(size / 80, (i) => `{"match":[{"uri":{"prefix":"/${i}"}}],"route":[{"destination":{"host":"a"}}]}`),
      ),
  },
  "a VirtualService with many expressions": {
    path: "/validate",
    object: (size) =>
      virtualService(
        list(
          size / 120,
          (i) => `{"match":[{"uri":{"regex":"(a{1,50}){1,9}${i}"}}],"route":[{"destination":{"host":"a"}}]}`,
        ),
      ),
  },
  "a VirtualService with one long expression": {
    path: "/validate",
    object: (size) =>
      virtualService(
        `{"match":[{"uri":{"regex":"${"(a|b)*".repeat(size / 6)}"}}],"route":[{"destination":{"host":"a"}}]}`,
      ),
  },
  "an AuthorizationPolicy with many rules": {
    path: "/validate",
    object: (size) =>
      `{"apiVersion":"security.istio.io/v1","kind":"AuthorizationPolicy","metadata":{"name":"p"},"spec":{"rules":[${list(size / 48, (i) => `{"to":[{"operation":{"paths":["/a${i}*"]}}]}`)}]}}`,
  },
  "an object with many unknown fields": {
    path: "/validate",
    object: (size) =>
      virtualService(
        "{}",
        list(size / 16, (i) => `"f${i}":1`),
      ),
  },
};

describe("the control plane", { timeout: 600_000 }, () => {
  let plane: MeasuredControlPlane;
  before(async () => {
    plane = await startControlPlane();
  });
  // What ends the program fails its own test, and no other.
  beforeEach(async () => {
    if (!plane.program.hasEnded) return;
    await plane[Symbol.asyncDispose]();
    plane = await startControlPlane();
  });
  after(() => plane?.[Symbol.asyncDispose]());

  for (const [shape, { sizes, messages, method = DELTA }] of Object.entries(XDS_SHAPES)) {
    test(`15010: ${shape}`, () =>
      assertLinear({
        sizes,
        costOf: (size) => {
          const sent = messages(size);
          return plane.program.cost(() => sendCall({ place: { port: plane.ports.grpc }, method, messages: sent }));
        },
      }));
  }

  for (const [shape, text] of Object.entries(TEXTS)) {
    test(`15010: a NACK with ${shape}`, () =>
      assertLinear({
        sizes: doublings(256 * 1024, MAX_MESSAGE_BYTES / 2),
        costOf: (size) => plane.program.cost(() => rejectFirstResponse(plane.ports.grpc, text(size))),
      }));
  }
  test("15010: a NACK that repeats names", () =>
    assertLinear({
      sizes: doublings(256 * 1024, MAX_MESSAGE_BYTES / 2),
      costOf: (size) => {
        const text = "outbound|80||s1.example.com ".repeat(size / 28);
        return plane.program.cost(() => rejectFirstResponse(plane.ports.grpc, text));
      },
    }));

  for (const [what, method] of [
    ["requests", DELTA],
    ["certificate requests", CERTIFICATES],
  ] as const) {
    test(`15012: ${what} without a token`, () =>
      assertLinear({
        sizes: doublings(512 * 1024, MAX_MESSAGE_BYTES),
        costOf: (size) => {
          const place: Place = { port: plane.ports.secureGrpc, tls: true };
          return plane.program.cost(() => sendCall({ place, method, messages: [Buffer.alloc(size - 8, 0x61)] }));
        },
      }));
  }
  test("15012: certificate requests with a long token", () =>
    assertLinear({
      sizes: doublings(2 * 1024, 32 * 1024),
      costOf: (size) => {
        const headers = { authorization: `Bearer ${"a.".repeat(size / 2)}` };
        const place: Place = { port: plane.ports.secureGrpc, tls: true };
        return plane.program.cost(() =>
          sendCall({ place, method: CERTIFICATES, messages: [Buffer.alloc(8)], headers }),
        );
      },
    }));

  for (const [shape, text] of Object.entries(JSONS)) {
    test(`15017: ${shape}`, () => review("/validate", text, MAX_REVIEW_BYTES));
  }
  for (const [shape, { path, maxBytes, object }] of Object.entries(REVIEWED)) {
    test(`15017: ${shape}`, () =>
      review(
        path,
        (size) =>
          `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","object":${object(size)}}}`,
        maxBytes,
      ));
  }

  function review(path: string, text: (size: number) => string, maxBytes = MAX_OBJECT_BYTES): Promise<void> {
    return assertLinear({
      sizes: doublings(64 * 1024, maxBytes),
      costOf: (size) => {
        const place: Place = { port: plane.ports.webhook, tls: true };
        const headers = { "content-type": "application/json" };
        return plane.program.cost(() => sendRequests({ place, method: "POST", path, headers, body: text(size) }, 1));
      },
    });
  }

  for (const [name, key] of [
    ["8080", "http"],
    ["15014", "monitoring"],
    ["9876", "controlz"],
  ] as const) {
    for (const [shape, text] of Object.entries(TEXTS)) {
      test(`${name}: a path and a query of ${shape}`, () =>
        assertLinear({
          sizes: doublings(1_000, 4_000),
          costOf: (size) => {
            const part = encodeURI(text(size));
            const path = `/debug/${part}?proxyID=${part}`;
            return plane.program.cost(() => sendRequests({ place: { port: plane.ports[key] }, path }, 50));
          },
        }));
    }
    test(`${name}: many headers`, () =>
      assertLinear({
        sizes: doublings(125, 1_000),
        costOf: (count) => {
          const headers = Object.fromEntries(Array.from({ length: count }, (_, i) => [`h${i}`, "v"]));
          return plane.program.cost(() =>
            sendRequests({ place: { port: plane.ports[key] }, path: "/version", headers }, 50),
          );
        },
      }));
  }
});

function list(count: number, item: (i: number) => string): string {
  return Array.from({ length: count }, (_, i) => item(i)).join();
}

function virtualService(http: string, extra = '"gateways":["mesh"]'): string {
  return `{"apiVersion":"networking.istio.io/v1","kind":"VirtualService","metadata":{"name":"v"},"spec":{"hosts":["a"],"http":[${http}],${extra}}}`;
}
