import assert from "node:assert/strict";
import { test } from "node:test";
import { aimOf, followRedirects, type Redirect } from "./redirects.ts";

interface Said {
  readonly status: number;
  readonly location?: string;
}

/** Answers as told, one after another, and the last one again and again. */
async function follow(answers: readonly Said[], more: { start?: string; mayFollow?: (url: URL) => boolean } = {}) {
  const { start = "http://app:80/a/b?c", ...rules } = more;
  const redirects: (Redirect | undefined)[] = [];
  let closed = 0;
  const ask = async (redirect: Redirect | undefined) => {
    const { status, location } = answers[redirects.length] ?? answers.at(-1) ?? { status: 0 };
    redirects.push(redirect);
    return { status, location, close: () => void closed++ };
  };
  const result = await followRedirects(new URL(start), { ask, ...rules }).then(
    ({ status }) => status,
    (error: Error) => error.message,
  );
  return { result, closed, redirects, urls: redirects.slice(1).map((redirect) => redirect?.url.href) };
}

test("followRedirects() goes where five kinds of answers lead, and nowhere else", async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    const { result, urls, closed } = await follow([{ status, location: "d" }, { status: 204 }]);
    assert.deepEqual([result, urls, closed], [204, ["http://app/a/d"], 1]);
  }
  for (const status of [200, 201, 300, 304, 305, 306, 399, 404])
    assert.deepEqual((await follow([{ status, location: "d" }])).result, status);
  for (const last of [{ status: 302 }, { status: 302, location: "" }]) assert.equal((await follow([last])).result, 302);
});

test("followRedirects() asks ten times at most, and lets go of what it leaves", async () => {
  const { result, redirects, closed } = await follow([{ status: 302, location: "/again" }]);
  assert.deepEqual([result, redirects.length, closed], ["stopped after 10 redirects", 10, 10]);
  const nine = Array.from({ length: 9 }, () => ({ status: 302, location: "/again" }));
  assert.equal((await follow([...nine, { status: 200 }])).result, 200);
});

test("followRedirects() fails where an answer leads nowhere", async () => {
  for (const [location, problem] of [
    ["http://[::bad/", 'failed to parse Location header "http://[::bad/"'],
    ["ftp://app/x", 'unsupported protocol "ftp:"'],
  ] as const) {
    const { result, closed } = await follow([{ status: 302, location }]);
    assert.deepEqual([result, closed], [problem, 1]);
  }
});

test("followRedirects() asks nobody by another protocol", async () => {
  const { result, redirects } = await follow([{ status: 200 }], { start: "ftp://app/x" });
  assert.deepEqual([result, redirects.length], ['unsupported protocol "ftp:"', 0]);
});

test("followRedirects() keeps an answer that leads where it may not go, be it the tenth", async () => {
  const mayFollow = ({ hostname }: URL) => hostname === "app";
  for (const location of ["http://else/", "ftp://else/"]) {
    const { result, closed } = await follow([{ status: 302, location }], { mayFollow });
    assert.deepEqual([result, closed], [302, 0]);
  }
  const nine = Array.from({ length: 9 }, () => ({ status: 302, location: "/again" }));
  assert.equal((await follow([...nine, { status: 307, location: "//else/" }], { mayFollow })).result, 307);
});

test("followRedirects() tells who sent us, how, and what to ask there", async () => {
  const { redirects } = await follow([
    { status: 307, location: "//other:81/x" },
    { status: 303, location: "https://app/y" },
    { status: 308, location: "http://app/z" },
    { status: 302, location: "relative" },
    { status: 200 },
  ]);
  assert.deepEqual(
    redirects.map((redirect) => redirect && [redirect.referer, redirect.sameName, redirect.sameMethod]),
    [
      undefined,
      ["http://app/a/b?c", true, true],
      ["http://other:81/x", false, false],
      [undefined, false, true],
      ["http://app/z", false, false],
    ],
  );
});

test("aimOf() reads a URL as a request needs it", () => {
  assert.deepEqual(aimOf(new URL("https://[::1]/a?b#c")), { https: true, host: "::1", port: 443, path: "/a?b" });
  assert.deepEqual(aimOf(new URL("http://app:81")), { https: false, host: "app", port: 81, path: "/" });
});
