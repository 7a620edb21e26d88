import assert from "node:assert/strict";
import { once } from "node:events";
import {
  createServer,
  get,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from "node:http";
import type { AddressInfo } from "node:net";
import { after, mock, test } from "node:test";
import { createDetails } from "./details.ts";
import { createProductpage } from "./productpage.ts";
import { createRatings } from "./ratings.ts";
import { createReviews, type Reviews } from "./reviews.ts";

// Every service that is missing on purpose is logged.
mock.method(console, "error", () => undefined);

const servers: Server[] = [];

after(() => {
  for (const server of servers) server.close().closeAllConnections();
});

async function start(server: Server): Promise<string> {
  servers.push(server);
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A service that never answers, or answers as told. */
function stub(listener: RequestListener = () => undefined): Promise<string> {
  return start(createServer(listener));
}

interface Urls {
  readonly detailsUrl?: string;
  readonly reviewsUrl?: string;
}

const NOWHERE = "http://127.0.0.1:1";

async function productpage({ detailsUrl = NOWHERE, reviewsUrl = NOWHERE }: Urls): Promise<string> {
  const ratingsUrl = await start(createRatings());
  return start(createProductpage({ podName: "productpage-1", detailsUrl, reviewsUrl, ratingsUrl, timeoutMs: 10_000 }));
}

async function reviews(version: string, ratingsUrl: string): Promise<string> {
  return start(createReviews({ version, podName: `reviews-${version}-1`, ratingsUrl }));
}

async function html(url: string, headers: Record<string, string> = {}): Promise<string> {
  const response = await fetch(url, { headers });
  assert.equal(response.status, 200);
  return response.text();
}

test("productpage shows details, reviews and who served them", async () => {
  const reviewsUrl = await reviews("v1", NOWHERE);
  const text = await html(`${await productpage({ detailsUrl: await start(createDetails()), reviewsUrl })}/productpage`);
  for (const part of [
    "The Comedy of Errors",
    "William Shakespeare",
    "Reviewer1",
    ">v1<",
    "reviews-v1-1",
    "productpage-1",
  ]) {
    assert.ok(text.includes(part), part);
  }
  assert.ok(!text.includes("★") && !text.includes("Sorry"));
  assert.match(text, /<li class="not-asked"><strong>ratings<\/strong>/);
});

for (const [version, color] of [
  ["v2", "black"],
  ["v3", "red"],
] as const) {
  test(`reviews ${version} has ${color} stars`, async () => {
    const url = await reviews(version, await start(createRatings()));
    const answer = (await (await fetch(`${url}/reviews/0`)).json()) as Reviews;
    assert.deepEqual(
      answer.reviews.map((review) => review.rating),
      [
        { stars: 5, color },
        { stars: 4, color },
      ],
    );
    const text = await html(`${await productpage({ reviewsUrl: url })}/productpage`);
    assert.ok(text.includes(`<p class="stars ${color}" title="4 of 5 stars">★★★★<span>★</span></p>`));
  });
}

test("reviews come without stars when ratings do not answer", async () => {
  const reviewsUrl = await reviews("v2", NOWHERE);
  const text = await html(`${await productpage({ reviewsUrl })}/productpage`);
  assert.ok(text.includes("Ratings are currently unavailable") && text.includes("Reviewer2"));
  assert.match(text, /<li class="failed"><strong>ratings<\/strong>/);
});

test("productpage says sorry for what is missing, late or broken, and shows the rest", async () => {
  const broken = await stub((_, response) => response.writeHead(503).end("no"));
  for (const reviewsUrl of [NOWHERE, broken, await stub()]) {
    const text = await html(
      `${await productpage({ detailsUrl: await start(createDetails()), reviewsUrl })}/productpage`,
    );
    assert.ok(text.includes("Sorry, product reviews are currently unavailable for this book."));
    assert.ok(text.includes("PublisherA"));
  }
  assert.ok((await html(`${await productpage({})}/productpage`)).includes("Sorry, product details are currently"));
});

test("a user who signed in is known to the other services, with the trace", async () => {
  const seen: IncomingHttpHeaders[] = [];
  const reviewsUrl = await stub((request, response) => {
    seen.push(request.headers);
    response.end("{}");
  });
  const url = await productpage({ reviewsUrl });
  const form = new URLSearchParams({ username: "jason" });
  const login = await fetch(`${url}/login`, { method: "POST", body: form, redirect: "manual" });
  assert.deepEqual([login.status, login.headers.get("location")], [303, "/productpage"]);
  const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
  await fetch(`${url}/api/v1/products/0/reviews`, {
    headers: { cookie, "x-request-id": "42", traceparent: "00-1-2-01" },
  });
  await fetch(`${url}/api/v1/products/0/reviews?u=mary`);
  await fetch(`${url}/api/v1/products/0/reviews`, { headers: { "end-user": "jason" } });
  assert.deepEqual(
    seen.map((headers) => headers["end-user"]),
    ["jason", "mary", undefined],
  );
  assert.deepEqual([seen[0]?.["x-request-id"], seen[0]?.traceparent], ["42", "00-1-2-01"]);
  const logout = await fetch(`${url}/logout`, { redirect: "manual" });
  assert.match(logout.headers.get("set-cookie") ?? "", /^user=; Max-Age=0/);
});

test("names and texts from outside cannot become HTML", async () => {
  const evil = "<script>alert(1)</script>";
  const answer = { id: 0, podname: evil, version: evil, reviews: [{ reviewer: evil, text: evil }] };
  const url = await productpage({ reviewsUrl: await stub((_, response) => response.end(JSON.stringify(answer))) });
  const text = await html(`${url}/productpage?u=${encodeURIComponent(evil)}`, { cookie: `user=${evil}` });
  assert.ok(!text.includes("<script") && text.includes("Sign in"));
  const form = new URLSearchParams({ username: "a; Domain=evil" });
  const login = await fetch(`${url}/login`, { method: "POST", body: form, redirect: "manual" });
  assert.equal(login.headers.get("set-cookie"), null);
});

test("the API answers with JSON, and 503 where a service is missing", async () => {
  const url = await productpage({ detailsUrl: await start(createDetails()) });
  const status = async (path: string) => (await fetch(url + path)).status;
  assert.deepEqual(await (await fetch(`${url}/api/v1/products/0/ratings`)).json(), {
    id: 0,
    ratings: { Reviewer1: 5, Reviewer2: 4 },
  });
  assert.equal(await status("/api/v1/products"), 200);
  assert.equal(await status("/api/v1/products/0"), 200);
  assert.equal(await status("/api/v1/products/0/reviews"), 503);
  for (const path of ["/api/v1/products/1", "/api/v1/products/0/x", "/api/v1/productsx", "/nowhere"]) {
    assert.equal(await status(path), 404, path);
  }
  assert.equal((await fetch(`${url}/static/style.css`)).headers.get("content-type"), "text/css");
});

/** Sends a path as it is, which fetch would tidy up. */
async function rawGet(base: string, path: string): Promise<{ status: number | undefined }> {
  const { port } = new URL(base);
  const request = get({ port, path });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.resume();
  return { status: response.statusCode };
}

test("every service answers /health, and 404 for what it does not know", async () => {
  for (const server of [createDetails(), createRatings()]) {
    const url = await start(server);
    assert.equal((await fetch(`${url}/health`)).status, 200);
    assert.equal((await rawGet(url, "//")).status, 400);
    for (const path of ["/", "/details/x", "/ratings/"]) assert.equal((await fetch(url + path)).status, 404);
  }
});

test("a form without end is refused", async () => {
  const url = await productpage({});
  const response = await fetch(`${url}/login`, { method: "POST", body: "x".repeat(20_000) });
  assert.equal(response.status, 413);
});
