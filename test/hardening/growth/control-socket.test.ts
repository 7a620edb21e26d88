/** What can be sent to a mesh on one machine costs at most what its size suggests. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { assertLinear, doublings } from "./growth.ts";
import { MeasuredProgram } from "./measured-program.ts";
import { sendBytes } from "./send.ts";
import { JSONS, TEXTS } from "./shapes.ts";

const MB = 1024 * 1024;
const REQUEST = `${JSON.stringify({ kind: "status" })}\n`;

describe("the control socket", { timeout: 300_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "growth-"));
  const path = join(folder, "control.sock");
  let host: MeasuredProgram;
  before(async () => {
    host = new MeasuredProgram(join(import.meta.dirname, "control-socket-host.ts"), [path], { cwd: folder });
    await host.printed(/(listening)/);
  });
  after(async () => {
    await host[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  for (const [shape, text] of Object.entries({ ...TEXTS, ...JSONS })) {
    test(`one line: ${shape}`, () =>
      assertLinear({
        sizes: doublings(MB, 16 * MB),
        costOf: (size) => {
          const bytes = Buffer.from(text(size));
          return host.cost(() => sendBytes({ path }, bytes));
        },
      }));
  }
  test("many requests", () =>
    assertLinear({
      sizes: doublings(2_000, 16_000),
      costOf: (count) => {
        const bytes = Buffer.from(REQUEST.repeat(count));
        return host.cost(() => sendBytes({ path }, bytes));
      },
    }));
});
