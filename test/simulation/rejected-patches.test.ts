/** Patches that pass our checks and that Envoy alone can tell to be wrong. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { EnvoyRig, envoyNode } from "../support/envoy-rig.ts";
import { CANNOT_ISOLATE } from "../support/isolated-envoy.ts";
import { object, service } from "../support/objects.ts";

const WEB = service("web", { name: "http", port: 80 });

function lua(script: string): string {
  return object("EnvoyFilter", "script", {
    configPatches: [
      {
        applyTo: "HTTP_FILTER",
        match: { context: "SIDECAR_OUTBOUND" },
        patch: {
          operation: "INSERT_FIRST",
          value: {
            name: "envoy.filters.http.lua",
            typed_config: {
              "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
              default_source_code: { inline_string: script },
            },
          },
        },
      },
    ],
  });
}

test("a patch that Envoy rejects is withdrawn: its listener is there without it, and others follow changes", {
  skip: CANNOT_ISOLATE,
}, async () => {
  await using rig = await EnvoyRig.start([
    envoyNode("sidecar", { ip: "10.9.1.1", name: "web-1", namespace: "default", labels: { app: "web" } }),
  ]);
  const hasLua = async () => (await rig.admin("/config_dump?resource=dynamic_listeners")).includes("http.lua.v3.Lua");
  const listeners = async () => (await rig.admin("/listeners")).split("\n").map((line) => line.split("::")[0]);

  const [complaint = "", ...others] = await rig.push(`${WEB}${lua("function (")}`);
  assert.match(complaint, /it gets it without the patches/);
  assert.match(complaint, /EnvoyFilter\/default\/script/);
  assert.deepEqual(others, []);
  assert.ok((await listeners()).includes("0.0.0.0_80"));
  assert.equal(await hasLua(), false);

  assert.deepEqual(await rig.push(`${WEB}${lua("function envoy_on_request(handle) end")}`), []);
  assert.equal(await hasLua(), true);
});
