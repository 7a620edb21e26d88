/** Random configurations, interleavings and broken streams against a proxy that behaves like Envoy. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type DeltaRequest, EMPTY_REQUEST } from "./messages/delta-request.ts";
import { CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE } from "./messages/type-urls.ts";
import type { Resource } from "./resource.ts";
import { newSession, nextResponse, receive, retargetTypes, type Session, type StreamKind, sent } from "./session.ts";
import { EMPTY_STATE_REQUEST, type StateRequest, toDelta } from "./state-request.ts";
import type { Draft } from "./subscription.ts";

/** A service that is absent does not exist. Numbers are versions; calls to a service go to the cluster of another one. */
type Mesh = Readonly<Record<string, Service>>;
interface Service {
  readonly cluster: string;
  readonly endpoints: string;
  readonly listener: string;
  readonly to: string;
}
type Layers = ReadonlyMap<string, ReadonlyMap<string, Resource>>;

const resource = (name: string, version: string, other?: string): Resource => ({
  name,
  version,
  value: Buffer.from(other ?? ""),
  awaits: other,
});

/** Listener `l-x` has a route `r-x`, which names a cluster `y`, which awaits the endpoints `y`. */
function layersOf(mesh: Mesh): Layers {
  const of = (make: (name: string, service: Service) => Resource) =>
    new Map(
      Object.entries(mesh)
        .map(([name, service]) => make(name, service))
        .map((made) => [made.name, made]),
    );
  return new Map([
    [CLUSTER_TYPE, of((name, { cluster }) => resource(name, cluster, name))],
    [ENDPOINT_TYPE, of((name, { endpoints }) => resource(name, endpoints))],
    [LISTENER_TYPE, of((name, { listener }) => resource(`l-${name}`, listener))],
    [ROUTE_TYPE, of((name, { to }) => resource(`r-${name}`, to in mesh ? to : name))],
  ]);
}

/** A response as the proxy reads it; over state-of-the-world xDS `removed` does not exist. */
interface Told {
  readonly nonce: string;
  readonly resources: readonly Resource[];
  readonly removed: readonly string[];
}
type Request = { readonly delta: DeltaRequest } | { readonly state: StateRequest };

/** Subscribes, warms, drops and keeps versions as Envoy does. */
class FakeEnvoy {
  readonly has = new Map(
    [CLUSTER_TYPE, ENDPOINT_TYPE, LISTENER_TYPE, ROUTE_TYPE].map((type) => [type, new Map<string, string>()]),
  );
  readonly subscribed = new Map([
    [ENDPOINT_TYPE, new Set<string>()],
    [ROUTE_TYPE, new Set<string>()],
  ]);
  /** Clusters in use, as opposed to those that wait for endpoints. */
  readonly active = new Set<string>();
  readonly warming = new Set<string>();
  outbox: Request[] = [];
  /** What it says of clusters while some of them are warming: nothing, until they are not. */
  #paused: Request[] = [];
  readonly #nonces = new Map<string, string>();
  readonly #kind: StreamKind;
  /** It had its first clusters: then it asks for listeners. */
  #started = false;

  constructor(kind: StreamKind) {
    this.#kind = kind;
  }

  connect(): void {
    this.outbox = [];
    this.#nonces.clear();
    this.#paused = [];
    this.#ask(CLUSTER_TYPE);
    if (this.subscribed.get(ENDPOINT_TYPE)?.size !== 0) this.#ask(ENDPOINT_TYPE);
    if (this.#started) for (const typeUrl of [LISTENER_TYPE, ROUTE_TYPE]) this.#ask(typeUrl);
  }

  #ask(typeUrl: string): void {
    const subscribe = [...(this.subscribed.get(typeUrl) ?? [])];
    this.#send({ ...EMPTY_REQUEST, typeUrl, subscribe, initialVersions: new Map(this.#of(typeUrl)) });
  }

  #send(delta: DeltaRequest): void {
    const { typeUrl } = delta;
    const names = [...(this.subscribed.get(typeUrl) ?? [])];
    const nonce = this.#nonces.get(typeUrl) ?? "";
    const request = this.#kind === "delta" ? { delta } : { state: { ...EMPTY_STATE_REQUEST, typeUrl, names, nonce } };
    const pauses = typeUrl === CLUSTER_TYPE && this.#started && this.warming.size > 0;
    (pauses ? this.#paused : this.outbox).push(request);
  }

  #resume(): void {
    if (this.warming.size > 0) return;
    this.outbox.push(...this.#paused.splice(0));
    if (!this.#started) for (const typeUrl of [LISTENER_TYPE, ROUTE_TYPE]) this.#ask(typeUrl);
    this.#started = true;
  }

  apply(typeUrl: string, response: Told): void {
    this.#nonces.set(typeUrl, response.nonce);
    const known = this.#of(typeUrl);
    const names = this.subscribed.get(typeUrl);
    const isWhole = this.#kind === "state" && names === undefined;
    const told = new Set(response.resources.map(({ name }) => name));
    const removed = isWhole ? [...known.keys()].filter((name) => !told.has(name)) : response.removed;
    const updates = response.resources.filter(({ name }) => names === undefined || names.has(name));
    for (const { name, version } of updates) {
      const changed = known.get(name) !== version;
      known.set(name, version);
      if (typeUrl === CLUSTER_TYPE && changed) this.#warm(name);
      if (typeUrl === ENDPOINT_TYPE) this.#warmed(name);
      if (typeUrl === LISTENER_TYPE) this.#want(ROUTE_TYPE, name.replace("l-", "r-"));
    }
    for (const name of removed) {
      known.delete(name);
      if (typeUrl === ENDPOINT_TYPE) this.#warmed(name);
      if (typeUrl === LISTENER_TYPE) this.#drop(ROUTE_TYPE, name.replace("l-", "r-"));
      if (typeUrl !== CLUSTER_TYPE) continue;
      this.active.delete(name);
      this.warming.delete(name);
      this.#drop(ENDPOINT_TYPE, name);
    }
    this.#send({ ...EMPTY_REQUEST, typeUrl, nonce: response.nonce });
    this.#resume();
    this.#checkRoutes();
  }

  #of(typeUrl: string): Map<string, string> {
    return this.has.get(typeUrl) ?? new Map();
  }
  #warm(name: string): void {
    this.warming.add(name);
    this.#want(ENDPOINT_TYPE, name);
  }
  #warmed(name: string): void {
    if (this.warming.delete(name)) this.active.add(name);
  }
  #want(typeUrl: string, name: string): void {
    if (this.subscribed.get(typeUrl)?.has(name)) return;
    this.subscribed.get(typeUrl)?.add(name);
    this.#send({ ...EMPTY_REQUEST, typeUrl, subscribe: [name] });
  }
  #drop(typeUrl: string, name: string): void {
    if (!this.subscribed.get(typeUrl)?.delete(name)) return;
    this.#of(typeUrl).delete(name);
    this.#send({ ...EMPTY_REQUEST, typeUrl, unsubscribe: [name] });
  }
  /** A call through a listener that has its routes must find its cluster. */
  #checkRoutes(): void {
    for (const route of this.#of(ROUTE_TYPE).keys()) {
      const name = route.replace("r-", "");
      if (this.#of(LISTENER_TYPE).has(`l-${name}`))
        assert.ok(this.active.has(name), `503: cluster ${name} is not there`);
    }
  }
}

/** The server's side of one stream after the other to the same proxy. */
class Simulation {
  readonly #kind: StreamKind;
  envoy: FakeEnvoy;
  session: Session<Resource>;
  #target: Layers = layersOf({});
  #newest: Layers = layersOf({});
  #now = 0;
  #nonce = 0;
  #inFlight: { typeUrl: string; response: Told }[] = [];

  constructor(kind: StreamKind) {
    this.#kind = kind;
    this.envoy = new FakeEnvoy(kind);
    this.session = newSession(kind);
  }

  configure(mesh: Mesh): void {
    this.#newest = layersOf(mesh);
  }
  cut(): void {
    this.session = newSession(this.#kind);
    this.#inFlight = [];
    // It cannot tell what it kept, so what it uses may be gone with the first response: only a new one has no gap.
    if (this.#kind === "state") this.envoy = new FakeEnvoy(this.#kind);
    this.envoy.connect();
  }
  toServer(): boolean {
    const request = this.envoy.outbox.shift();
    if (request === undefined) return false;
    const delta =
      "delta" in request ? request.delta : toDelta(request.state, this.session.types.get(request.state.typeUrl));
    this.session = receive(this.session, delta, this.#now).session;
    return true;
  }
  toProxy(): boolean {
    const message = this.#inFlight.shift();
    if (message !== undefined) this.envoy.apply(message.typeUrl, message.response);
    return message !== undefined;
  }
  /** As the xDS server does it: endpoints are always the newest, the rest when the last round is over. */
  serve(): boolean {
    const idle = nextResponse(this.session, this.#now).kind === "idle";
    if (idle) this.#target = this.#newest;
    for (const [typeUrl, layer] of this.#target) {
      const current = typeUrl === ENDPOINT_TYPE ? this.#newest.get(typeUrl) : layer;
      this.session = retargetTypes(this.session, new Map([[typeUrl, current === undefined ? [] : [current]]]));
    }
    const next = nextResponse(this.session, this.#now);
    // Messages take less time than anything waits for.
    const isQuiet = this.#inFlight.length + this.envoy.outbox.length === 0;
    const until = next.kind === "wait" && isQuiet ? next.until : undefined;
    this.#now = until ?? this.#now;
    if (next.kind !== "send") return until !== undefined;
    const nonce = `${this.#nonce++}`;
    this.session = sent(this.session, next, { nonce, sentAt: this.#now });
    this.#inFlight.push({ typeUrl: next.typeUrl, response: { ...told(next.draft), nonce } });
    return true;
  }
  settle(): void {
    for (let step = 0; this.toServer() || this.toProxy() || this.serve(); step++)
      assert.ok(step < 500, "does not settle");
  }
}

const told = ({ resources, repeated, removed }: Draft<Resource>) => ({
  resources: [...resources, ...repeated],
  removed,
});

const version = fc.constantFrom("1", "2", "3");
const mesh = fc.dictionary(
  fc.constantFrom("a", "b", "c"),
  fc.record({ cluster: version, endpoints: version, listener: version, to: fc.constantFrom("a", "b", "c") }),
);
const action = fc.oneof(
  { weight: 2, arbitrary: mesh },
  { weight: 6, arbitrary: fc.constantFrom("toServer", "toProxy", "serve", "serveAll") },
  { weight: 1, arbitrary: fc.constantFrom("cut", "settle") },
);

for (const kind of ["delta", "state"] as const) {
  test(`whatever happens on a ${kind} stream, the proxy ends with exactly what exists, nothing warming, and no route ever names a missing cluster`, () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 60, size: "max" }), mesh, (actions, last) => {
        const simulation = new Simulation(kind);
        simulation.cut();
        for (const step of actions) {
          if (typeof step === "object") simulation.configure(step);
          else if (step === "cut") simulation.cut();
          else if (step === "settle") simulation.settle();
          else if (step === "serveAll") while (simulation.serve());
          else if (step === "toServer") simulation.toServer();
          else if (step === "toProxy") simulation.toProxy();
          else simulation.serve();
        }
        simulation.configure(last);
        simulation.settle();
        for (const [typeUrl, layer] of layersOf(last)) {
          const has = [...(simulation.envoy.has.get(typeUrl) ?? [])].sort();
          assert.deepEqual(has, [...layer.values()].map((r) => [r.name, r.version]).sort(), typeUrl);
        }
        assert.deepEqual([...simulation.envoy.warming], []);
      }),
      { numRuns: 500 },
    );
  });
}
