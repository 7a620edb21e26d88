import assert from "node:assert/strict";
import { test } from "node:test";
import { styleFor } from "#lib/print/style.ts";
import { formatHookRows, formatRevisionRows, formatWebhookMatches } from "./injection-tables.ts";

const PLAIN = styleFor({}, {});

test("formatWebhookMatches() marks who injects, and warns of two", () => {
  const match = { name: "hook", revision: "default", injected: true, reason: "because" };
  assert.equal(
    formatWebhookMatches([match, { ...match, name: "other", injected: false }], PLAIN),
    `WEBHOOK  REVISION  INJECTED      REASON
hook     default   ✔             because
other    default   ✘             because
`,
  );
  assert.match(formatWebhookMatches([match, match], PLAIN), /\nERROR: multiple webhooks will inject/);
  assert.match(formatWebhookMatches([], PLAIN), /^ERROR: no Istio injection hooks present/);
  const coloured = formatWebhookMatches([match], styleFor({ isTTY: true }, {}));
  assert.ok(coloured.includes(`${styleFor({ isTTY: true }, {}).good("✔")}${" ".repeat(13)}because`));
});

test("formatRevisionRows() tells refusals and restarts", () => {
  const row = { namespace: "shop", revision: "default", podRevision: "", pods: 3, disabled: 1, needsRestart: 2 };
  assert.equal(
    formatRevisionRows([row, { ...row, podRevision: "default", pods: 0 }]),
    `NAMESPACE ISTIO-REVISION POD-REVISIONS
shop      default        <non-Istio>: 3 (injection disabled: 1) NEEDS RESTART: 2
shop      default        <no pods>
`,
  );
  assert.equal(formatRevisionRows([]), "No Istio injected namespaces present.\n");
});

test("formatHookRows() says of hooks that inject into no namespace that they do not", () => {
  const row = { namespace: undefined, hook: "h", revision: "r", image: "i" };
  assert.equal(
    formatHookRows([row]),
    "NAMESPACES          INJECTOR-HOOK ISTIO-REVISION SIDECAR-IMAGE\nDOES NOT AUTOINJECT h             r              i\n",
  );
  assert.equal(formatHookRows([]), "No Istio injection hooks present.\n");
});
