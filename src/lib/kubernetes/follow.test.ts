import assert from "node:assert/strict";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { Backoff } from "../async/backoff.ts";
import { KubernetesApi, type RawObject } from "./api-client.ts";
import { type FollowOptions, follow } from "./follow.ts";
import { troubleText } from "./missing-right.ts";

const SERVICES = { group: "", version: "v1", kind: "Service", plural: "services", namespaced: true };

type Answer = (response: ServerResponse, query: URLSearchParams) => void;

/** A server that answers each request with the next of its answers, and the last one ever after. */
async function openServer(answers: readonly Answer[], answerMs?: number) {
  const asked: URLSearchParams[] = [];
  const server = createServer((request: IncomingMessage, response) => {
    const { searchParams } = new URL(request.url ?? "", "http://x");
    asked.push(searchParams);
    answers[Math.min(asked.length, answers.length) - 1]?.(response, searchParams);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const access = { server: `http://127.0.0.1:${port}`, namespace: "default", credentials: async () => ({}) };
  const api = new KubernetesApi(access, answerMs === undefined ? {} : { answerMs });
  const close = () => {
    api.close();
    server.closeAllConnections();
    server.close();
  };
  return { api, asked, close };
}

function service(name: string, resourceVersion: string): RawObject {
  return { metadata: { name, namespace: "default", resourceVersion, managedFields: [{ manager: "x" }] } };
}

function list(version: string, items: readonly RawObject[], next?: string): Answer {
  return (response) =>
    response.end(JSON.stringify({ metadata: { resourceVersion: version, continue: next }, items: [...items] }));
}

function status(code: number, headers: Readonly<Record<string, string>> = {}): Answer {
  return (response) => response.writeHead(code, headers).end(JSON.stringify({ message: `status ${code}` }));
}

/** A watch that sends lines and stays open, or ends. */
function watch(events: readonly unknown[], { ends = false } = {}): Answer {
  return (response) => {
    response.write(events.map((event) => (typeof event === "string" ? event : `${JSON.stringify(event)}\n`)).join(""));
    if (ends) response.end();
  };
}

/** What a follower hears, until it was `count` things. */
async function heard(
  answers: readonly Answer[],
  count: number,
  { answerMs, ...more }: Partial<FollowOptions> & { answerMs?: number } = {},
) {
  const { api, asked, close } = await openServer(answers, answerMs);
  const aborting = new AbortController();
  const seen: string[] = [];
  const hear = (what: string) => {
    if (seen.push(what) >= count) aborting.abort();
  };
  const names = (objects: readonly RawObject[]) => objects.map(({ metadata }) => metadata.name).join();
  try {
    await follow({
      api,
      type: SERVICES,
      backoff: new Backoff({ initialMs: 1, maxMs: 2 }),
      signal: aborting.signal,
      follower: {
        replace: async (objects) => hear(`all: ${names(objects)}`),
        put: (object) => hear(`put ${object.metadata.name}@${object.metadata.resourceVersion}`),
        remove: (object) => hear(`removed ${object.metadata.name}`),
        trouble: (problem) => {
          if (problem !== undefined) hear(`trouble: ${troubleText(problem, SERVICES).replace(/^Kubernetes \S+ /, "")}`);
        },
      },
      ...more,
    });
  } finally {
    close();
  }
  return { seen, asked };
}

const ADDED = { type: "ADDED", object: service("b", "11") };
const DELETED = { type: "DELETED", object: service("a", "12") };

function followTest(name: string, run: () => Promise<void>): void {
  test(`follow(): ${name}`, { timeout: 120_000 }, run);
}

followTest("a list page by page, then changes", async () => {
  const pages = [list("10", [service("a", "1")], "next"), list("10", [service("c", "2")])];
  const { seen, asked } = await heard([...pages, watch([ADDED, DELETED])], 3);
  assert.deepEqual(seen, ["all: a,c", "put b@11", "removed a"]);
  assert.equal(asked[1]?.get("continue"), "next");
  assert.equal(asked[2]?.get("resourceVersion"), "10");
  assert.equal(asked[2]?.get("allowWatchBookmarks"), "true");
});

followTest("a watch that ends goes on where it was, bookmarks included", async () => {
  const bookmark = { type: "BOOKMARK", object: { metadata: { resourceVersion: "20" } } };
  const answers = [list("10", []), watch([ADDED, bookmark], { ends: true }), watch([DELETED])];
  const { seen, asked } = await heard(answers, 3);
  assert.deepEqual(seen, ["all: ", "put b@11", "removed a"]);
  assert.equal(asked[2]?.get("resourceVersion"), "20");
});

followTest("a version that is too old leads to a new list, without a word", async () => {
  const gone = { type: "ERROR", object: { metadata: {}, code: 410, reason: "Expired", message: "too old" } };
  const answers = [list("10", [service("a", "1")]), watch([gone]), status(410), list("30", []), watch([ADDED])];
  const { seen, asked } = await heard(answers, 3);
  assert.deepEqual(seen, ["all: a", "all: ", "put b@11"]);
  assert.equal(asked[4]?.get("resourceVersion"), "30");
});

followTest("refusals, broken answers and broken events are told, and tried again", async () => {
  const torn: Answer = (response) => {
    response.writeHead(200, { "content-length": "100" }).write("{");
    response.destroy();
  };
  const garbage: Answer = (response) => response.end("<html>");
  const answers = [
    status(500),
    torn,
    garbage,
    list("10", []),
    watch(["{broken\n"]),
    watch([{ kind: "x" }]),
    watch([ADDED]),
  ];
  const { seen } = await heard(answers, 7);
  assert.match(seen[0] ?? "", /^trouble: .*status 500$/);
  assert.match(seen[1] ?? "", /^trouble: .*(aborted|hang up)/);
  assert.match(seen[2] ?? "", /^trouble: .*not valid JSON/);
  assert.equal(seen[3], "all: ");
  assert.match(seen[4] ?? "", /^trouble: /);
  assert.match(seen[5] ?? "", /^trouble: .*no event/);
  assert.equal(seen[6], "put b@11");
});

followTest("a server that asks for patience gets it", async () => {
  const start = performance.now();
  await heard([status(429, { "retry-after": "1" }), list("10", [])], 2);
  assert.ok(performance.now() - start >= 990);
});

followTest("a watch that falls silent is begun anew", async () => {
  const { seen, asked } = await heard([list("10", []), watch([ADDED]), watch([DELETED])], 3, { silenceMs: 1_000 });
  assert.deepEqual(seen, ["all: ", "put b@11", "removed a"]);
  assert.equal(asked[2]?.get("resourceVersion"), "11");
});

followTest("a list that stops in the middle is given up and asked for again, a watch is not", async () => {
  const stalled: Answer = (response) => void response.write('{"items": [');
  const late: Answer = (response) => {
    response.write("\n");
    setTimeout(() => watch([ADDED])(response, new URLSearchParams()), 1_500);
  };
  const { seen, asked } = await heard([stalled, list("10", []), late], 3, { answerMs: 700 });
  assert.match(seen[0] ?? "", /^trouble: .*no answer in 0.7 s/);
  assert.deepEqual(seen.slice(1), ["all: ", "put b@11"]);
  assert.equal(asked.length, 3);
});

followTest("a missing right is told with the rule that gives it", async () => {
  const { seen } = await heard([status(403)], 1);
  assert.match(
    seen[0] ?? "",
    /add to the ClusterRole .*apiGroups: \[""\], resources: \["services"\], verbs: \["get", "list", "watch"\]$/,
  );
});

followTest("who wrote which field is not kept", async () => {
  const { api, close } = await openServer([list("10", [service("a", "1")])]);
  const aborting = new AbortController();
  let kept: RawObject | undefined;
  const replace = async ([object]: readonly RawObject[]) => {
    kept = object;
    aborting.abort();
  };
  const follower = { replace, put: () => {}, remove: () => {}, trouble: () => {} };
  const backoff = new Backoff({ initialMs: 1, maxMs: 2 });
  await follow({ api, type: SERVICES, backoff, signal: aborting.signal, follower });
  close();
  assert.equal(kept?.kind, "Service");
  assert.equal(kept?.apiVersion, "v1");
  assert.equal(kept?.metadata.managedFields, undefined);
});

followTest("the same trouble is told once, and that it is over when the server has answered", async () => {
  const answers = [list("10", []), status(500), status(500), status(500), watch([ADDED])];
  const { api, close } = await openServer(answers);
  const told: string[] = [];
  const stopping = new AbortController();
  let failures = 0;
  await follow({
    api,
    type: SERVICES,
    backoff: new Backoff({ initialMs: 1, maxMs: 2 }),
    signal: stopping.signal,
    follower: {
      replace: async () => {},
      put: () => stopping.abort(),
      remove: () => {},
      trouble: (problem) => told.push(problem === undefined ? "over" : "trouble"),
      failed: () => failures++,
    },
  });
  close();
  assert.deepEqual(told, ["over", "trouble", "over"]);
  assert.equal(failures, 3);
});

/** A watch that breaks off behind an event. */
function cutOff(event: unknown): Answer {
  return (response) => void response.write(`${JSON.stringify(event)}\n`, () => response.destroy());
}

followTest("a watch whose connection breaks is begun anew without a word", async () => {
  const answers = [list("10", []), cutOff(ADDED), list("12", [service("a", "1")]), watch([DELETED])];
  const { seen, asked } = await heard(answers, 3, { fieldSelector: "metadata.name=a", labelSelector: "app" });
  assert.deepEqual(seen, ["all: ", "put b@11", "removed a"]);
  assert.equal(asked[2]?.get("limit"), "1");
  // Who may see nothing else would be refused.
  for (const query of asked)
    assert.deepEqual([query.get("fieldSelector"), query.get("labelSelector")], ["metadata.name=a", "app"]);
  assert.equal(asked[3]?.get("resourceVersion"), "11");
});

followTest("a server that comes back with an older store is listed again", async () => {
  const restored = list("8", [service("c", "3")]);
  const answers = [list("10", [service("a", "1")]), cutOff(ADDED), restored, restored, watch([DELETED])];
  const { seen, asked } = await heard(answers, 4);
  assert.deepEqual(seen, ["all: a", "put b@11", "all: c", "removed a"]);
  assert.equal(asked[4]?.get("resourceVersion"), "8");
});

followTest("who waits for a server that was away comes back when it answers somebody", async () => {
  const { api, close } = await openServer([(response) => response.destroy(), list("10", [])]);
  const stopping = new AbortController();
  const start = performance.now();
  const told = Promise.withResolvers<void>();
  const following = follow({
    api,
    type: SERVICES,
    backoff: new Backoff({ initialMs: 100_000, maxMs: 100_000 }),
    signal: stopping.signal,
    follower: { replace: async () => stopping.abort(), put: () => {}, remove: () => {}, trouble: () => told.resolve() },
  });
  await told.promise;
  assert.equal(api.returned?.aborted, false);
  await api.call({ path: "/api/v1/namespaces" });
  assert.equal(api.returned, undefined);
  await following;
  close();
  assert.ok(performance.now() - start < 20_000);
});
