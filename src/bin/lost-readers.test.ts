import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";

for (const program of ["pilot-agent", "pilot-discovery", "mizzen"]) {
  test(`${program} ends in peace when nobody reads what it prints`, async () => {
    const child = spawn(process.execPath, [join(import.meta.dirname, `${program}.ts`), "completion", "bash"], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    child.stdout.destroy();
    const [said, [code]] = await Promise.all([text(child.stderr), once(child, "exit")]);
    assert.deepEqual({ code, said }, { code: 0, said: "" });
  });
}
