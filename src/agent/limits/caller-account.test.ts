import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { callerAccount } from "./caller-account.ts";

const OTHER = 12_345;
/** Connects, and goes on as its argument says. */
const CALLER = `const s = require("net").connect({ port: +process.argv[1], host: process.argv[2] }, () => {
  if (process.argv[3] === "close") s.destroy();
  if (process.argv[3] === "half") s.end();
}); s.on("error", () => {}); setTimeout(() => {}, 60_000);`;

/** The server's end of a connection of another process. */
async function called(
  t: TestContext,
  { host = "127.0.0.1", uid = process.getuid?.() ?? 0, then = "" },
): Promise<Socket> {
  const server = createServer({ allowHalfOpen: true }).listen(0, host.includes(":") ? "::" : "127.0.0.1");
  t.after(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const as = uid === process.getuid?.() ? {} : { uid, gid: uid };
  const child = spawn(process.execPath, ["-e", CALLER, String(port), host, then], { stdio: "ignore", ...as });
  t.after(() => void child.kill("SIGKILL"));
  const [socket] = (await once(server, "connection")) as [Socket];
  t.after(() => socket.destroy());
  return socket;
}

test("callerAccount() tells the account at the other end, over IPv4, IPv6 and IPv4 in IPv6's form", async (t) => {
  for (const host of ["127.0.0.1", "::1", "::ffff:127.0.0.1"])
    assert.equal(await callerAccount(await called(t, { host })), process.getuid?.(), host);
});

const ROOT_ONLY = { skip: process.getuid?.() !== 0 && "needs root" };

test("callerAccount() tells another account", ROOT_ONLY, async (t) => {
  for (const host of ["127.0.0.1", "::1"])
    assert.equal(await callerAccount(await called(t, { host, uid: OTHER })), OTHER, host);
});

test("callerAccount() does not take a caller for root that has closed its end", ROOT_ONLY, async (t) => {
  for (const then of ["close", "half"]) {
    const socket = await called(t, { uid: OTHER, then });
    await once(socket.resume(), "end");
    assert.equal(await callerAccount(socket), undefined, then);
  }
});

test("callerAccount() is undefined where nothing is certain", async () => {
  const ends = { remoteAddress: "127.0.0.1", remotePort: 0x1111, localAddress: "127.0.0.1", localPort: 0x3aac };
  const line = (columns: string) => async () => [`   0: ${columns}`];
  const local = "0100007F:1111 0100007F:3AAC";
  assert.equal(await callerAccount(ends, line(`${local} 01 0:0 00:00 0 1337 0 99`)), 1337);
  for (const columns of [
    `${local} 06 0:0 00:00 0 0 0 99`,
    `${local} 01 0:0 00:00 0 0 0 0`,
    `${local} 01 0:0 00:00 0 65534 0 99`,
    "0100007F:1112 0100007F:3AAC 01 0:0 00:00 0 1337 0 99",
    "0100007F:1111 0100007F:3AAD 01 0:0 00:00 0 1337 0 99",
    "nonsense",
    "",
  ])
    assert.equal(await callerAccount(ends, line(columns)), undefined, columns);
  assert.equal(await callerAccount({ ...ends, remoteAddress: "127.0.0.6" }, line("")), undefined);
  assert.equal(await callerAccount({}, line("")), undefined);
});
