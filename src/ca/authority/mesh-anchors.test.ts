import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { before, beforeEach, describe, type TestContext, test } from "node:test";
import { createLogger } from "#lib/log/log.ts";
import { selfSignedCa } from "../keys/self-signed.ts";
import type { CaCertificate } from "../keys/trust-anchors.ts";
import { MeshAnchors } from "./mesh-anchors.ts";

const DAY = 86_400_000;

describe("MeshAnchors", () => {
  let roots: readonly string[];
  let entries: readonly CaCertificate[];
  let answers: Map<string, () => string>;
  let changed: Set<() => void>;
  let lines: string[];
  before(async () => {
    const make = () => selfSignedCa({ trustDomain: "a", lifetimeMs: DAY, keyKind: "P-256", now: Date.now() });
    roots = [(await make()).rootPem, (await make()).rootPem];
  });
  beforeEach(() => {
    [entries, answers, changed, lines] = [[], new Map(), new Set(), []];
  });

  const bundle = (pem = "") => {
    const x5c = [new X509Certificate(pem).raw.toString("base64")];
    return JSON.stringify({ keys: [{ use: "x509-svid", x5c }] });
  };
  const refused = () => {
    throw new Error("refused");
  };

  function started(t: TestContext): MeshAnchors {
    const anchors = new MeshAnchors({
      entries: () => entries,
      onChange: (listener) => {
        changed.add(listener);
        return () => changed.delete(listener);
      },
      fetch: async (url) => (answers.get(url) ?? refused)(),
      log: createLogger({ write: (line) => lines.push(line) }),
    });
    const stopping = new AbortController();
    const running = anchors.run(stopping.signal);
    t.after(() => {
      stopping.abort();
      return running;
    });
    return anchors;
  }
  const next = (anchors: MeshAnchors) =>
    new Promise<void>((resolve) => {
      const stop = anchors.subscribe(() => {
        stop();
        resolve();
      });
    });
  const change = (to: readonly CaCertificate[]) => {
    entries = to;
    for (const listener of [...changed]) listener();
  };

  test("are those of the config at once, and those of bundles when they are there, over TLS", async (t) => {
    entries = [{ pem: roots[0] }, { spiffeBundleUrl: "bundle.example" }];
    answers.set("https://bundle.example", () => bundle(roots[1]));
    const anchors = started(t);
    assert.deepEqual(anchors.current(), [roots[0]]);
    await next(anchors);
    assert.deepEqual(anchors.current(), roots);
  });

  test("follow the config, and forget bundles that it does not name any more", async (t) => {
    answers.set("https://bundle.example", () => bundle(roots[1]));
    entries = [{ spiffeBundleUrl: "https://bundle.example" }];
    const anchors = started(t);
    await next(anchors);
    assert.deepEqual(anchors.current(), [roots[1]]);
    change([{ pem: roots[0] }]);
    assert.deepEqual(anchors.current(), [roots[0]]);
    await next(anchors);
    assert.deepEqual(anchors.current(), [roots[0]]);
  });

  test("keep what a bundle held while it cannot be had, and say so", async (t) => {
    const url = "https://bundle.example";
    answers.set(url, () => bundle(roots[1]));
    entries = [{ spiffeBundleUrl: url }];
    const anchors = started(t);
    await next(anchors);
    answers.set(url, refused);
    change([{ spiffeBundleUrl: url }]);
    await next(anchors);
    assert.deepEqual(anchors.current(), [roots[1]]);
    assert.match(lines.join(""), /error\tcannot get a SPIFFE bundle.*kept=1.*reason=refused/);
  });

  test("say once what is wrong with an entry", (t) => {
    entries = [{ pem: "nonsense" }];
    const anchors = started(t);
    assert.deepEqual([anchors.current(), anchors.current()], [[], []]);
    assert.equal(lines.filter((line) => line.includes("pem holds no certificate")).length, 1);
  });
});
