import assert from "node:assert/strict";
import { once } from "node:events";
import { statSync } from "node:fs";
import { request } from "node:http";
import { dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { temporaryFolder } from "../../test/support/fake-control-plane.ts";
import { controlzListener } from "./controlz.ts";

test("ControlZ on a unix socket shows the environment, to its own account alone", async (t) => {
  const path = join(temporaryFolder(t), "private", "ctrlz");
  const listener = controlzListener({
    address: { socket: path },
    env: { PASSWORD: "secret" },
    commandLine: [],
    scopes: new Map(),
    authenticate: async () => ({ refused: "nobody" }),
    seesAll: () => false,
    revision: "default",
    log: { info: () => undefined },
  });
  assert.equal(await listener.start(), `unix:${path}`);
  t.after(() => listener.stop(0));
  assert.deepEqual([statSync(path).mode & 0o777, statSync(dirname(path)).mode & 0o777], [0o600, 0o700]);
  const sent = request({ socketPath: path, path: "/envj", agent: false }).end();
  const [response] = await once(sent, "response");
  assert.deepEqual(JSON.parse(await text(response)), [{ name: "PASSWORD", value: "secret" }]);
});
