import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { checkPolicies } from "./check-policies.ts";

async function refusalOf(text: string): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), "policies-"));
  try {
    writeFileSync(join(folder, "a.yaml"), text);
    await checkPolicies([folder]);
    return undefined;
  } catch (thrown) {
    assert.ok(thrown instanceof Error);
    return thrown.message.replaceAll(`${folder}/`, "");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const policy = (spec: string, labels = "{}") =>
  `apiVersion: security.istio.io/v1\nkind: AuthorizationPolicy\nmetadata: {name: p, labels: ${labels}}\nspec: ${spec}\n`;

test("rejects a security object with a mistake, with file, line and field", async () => {
  const refusal = await refusalOf(policy("{action: DENIED}"));
  assert.match(refusal ?? "", /^a\.yaml:4: AuthorizationPolicy\/default\/p: spec\.action must be one of/);
  assert.match((await refusalOf(policy("{rules: ["))) ?? "", /^a\.yaml:\d+: is not YAML/);
  assert.match(
    (await refusalOf(policy("{rulez: []}"))) ?? "",
    /spec\.rulez is not a known field; did you mean "rules"\?$/,
  );
});

test("accepts valid ones, those of other revisions, and other objects with mistakes", async () => {
  assert.equal(await refusalOf(policy("{rules: [{}]}")), undefined);
  assert.equal(await refusalOf(policy("{action: DENIED}", "{istio.io/rev: canary}")), undefined);
  assert.equal(await refusalOf("apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: 5\n"), undefined);
});
