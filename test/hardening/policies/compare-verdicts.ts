/** What our evaluator says of random requests under random policies, beside what a real Envoy does. */
import assert from "node:assert/strict";
import fc from "fast-check";
import { evaluate } from "#explain/authorization/evaluate.ts";
import { normalizedPath } from "#explain/authorization/path.ts";
import { tokenOutcome } from "#explain/authorization/token.ts";
import type { Snapshot } from "#model/snapshot.ts";
import { authorizationPoliciesOf } from "#translate/policies/authorization-policies.ts";
import { requestAuthenticationsOf } from "#translate/policies/request-authentications.ts";
import { type Ask, AuthorizationEnvoy, WORKLOAD } from "../../support/authorization-envoy.ts";
import { PROVIDER, ProviderServer } from "./provider.ts";
import { type PolicySet, policySet, snapshotOf } from "./random-policies.ts";
import {
  caller,
  IDENTITIES,
  type RandomCaller,
  type RandomRequest,
  request,
  signed,
  TRUST_DOMAINS,
} from "./random-requests.ts";

/** Per Envoy: that is one round. */
const SETS = 50;
const CALLERS = 5;
const REQUESTS_OF_CALLER = 19;
/** Each caller also makes a connection that is not HTTP. */
const VERDICTS_PER_ROUND = SETS * CALLERS * (REQUESTS_OF_CALLER + 1);

export interface Comparison {
  readonly verdicts: number;
  /** How often each outcome was seen. */
  readonly outcomes: Readonly<Record<string, number>>;
}

/** Compares whole rounds until there are as many verdicts; fails at the first difference, with what replays it. */
export async function compareVerdicts(
  { verdicts, seed }: { readonly verdicts: number; readonly seed: number },
  onRound: (done: number) => void = () => undefined,
): Promise<Comparison> {
  const outcomes: Record<string, number> = {};
  using provider = await ProviderServer.start();
  let done = 0;
  for (let round = 0; done < verdicts; round++) {
    for (const outcome of await compareRound(seed + round, provider.port)) {
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      done++;
    }
    onRound(done);
  }
  return { verdicts: done, outcomes };
}

async function compareRound(seed: number, providerPort: number): Promise<readonly string[]> {
  const sets = fc.sample(policySet, { numRuns: SETS, seed });
  await using envoy = await AuthorizationEnvoy.start(
    IDENTITIES,
    sets.map((set) => (port: number) => snapshotOf(set, port)),
    { [PROVIDER.cluster]: providerPort },
  );
  const outcomes = await Promise.all(sets.map((set, index) => compareSet({ envoy, seed, set, index })));
  return outcomes.flat();
}

interface SetOfRound {
  readonly envoy: AuthorizationEnvoy;
  readonly seed: number;
  readonly set: PolicySet;
  readonly index: number;
}

async function compareSet({ envoy, seed, set, index }: SetOfRound): Promise<readonly string[]> {
  const snapshots = {
    http: snapshotOf(set, envoy.ports[index] ?? 0),
    tcp: snapshotOf(set, envoy.tcpPorts[index] ?? 0),
  };
  const outcomes: string[] = [];
  const check = (asked: object, expected: string, found: string) => {
    const replay = `node test/hardening/policy-differential.ts --seed ${seed} --requests ${VERDICTS_PER_ROUND}`;
    const what = `${JSON.stringify(asked)}\n${JSON.stringify(set, undefined, 1)}\nreplay: ${replay}`;
    assert.equal(found, expected, `Envoy: ${found}, evaluated: ${expected}\n${what}`);
    outcomes.push(found);
  };
  for (const from of fc.sample(caller, { numRuns: CALLERS, seed: seed * SETS + index })) {
    const port = envoy.tcpPorts[index] ?? 0;
    const expected = expectedOfConnection(snapshots.tcp, from, { port, set });
    check(from, expected, (await envoy.echo(index, from)) ? "echo" : "closed");
    const requests = fc.sample(request, { numRuns: REQUESTS_OF_CALLER, seed: seed * SETS + index + outcomes.length });
    for (const random of requests) {
      const asked = askOf(from, random);
      const { status, headers } = await envoy.answer(index, asked);
      const wasAsked = status === 200 && headers[PROVIDER.header] !== undefined;
      const wanted = expectedOfRequest(snapshots.http, asked, { random, port: envoy.ports[index] ?? 0, set });
      check({ ...asked, claims: random.claims }, wanted, wasAsked ? "200 asked" : String(status));
    }
  }
  return outcomes;
}

function askOf(from: RandomCaller, { claims, forged, ...random }: RandomRequest): Ask {
  const authorization = claims === undefined ? {} : { authorization: `Bearer ${signed(claims, forged)}` };
  return { ...from, ...random, headers: { ...random.headers, ...authorization } };
}

interface Place {
  readonly port: number;
  readonly set: PolicySet;
}

function expectedOfConnection(snapshot: Snapshot, from: RandomCaller, { port }: Place): string {
  const { identity: peer, sourceIp, sni = "" } = from;
  const connection = { peer, sourceIp, remoteIp: sourceIp, destinationIp: "127.0.0.1", port, sni };
  // A provider that speaks HTTP is not asked about connections.
  const policies = authorizationPoliciesOf(snapshot, WORKLOAD).filter(({ spec }) => spec.action !== "CUSTOM");
  const request = { protocol: "tcp" as const, ...connection };
  const { verdict } = evaluate({ policies, trustDomains: TRUST_DOMAINS, canAsk: true, request });
  return verdict === "allowed" ? "echo" : "closed";
}

function expectedOfRequest(
  snapshot: Snapshot,
  asked: Ask,
  { random, port, set }: Place & { readonly random: RandomRequest },
): string {
  const path = normalizedPath(asked.path ?? "/", set.normalization);
  if (path === undefined) return "400";
  const rules = requestAuthenticationsOf(snapshot, WORKLOAD).flatMap(({ spec }) => spec.jwtRules ?? []);
  const token = random.claims === undefined ? undefined : signed(random.claims, random.forged);
  const outcome = token === undefined ? { claims: undefined } : tokenOutcome(token, rules, Date.now());
  const { identity: peer, sourceIp = "127.0.0.1", sni = "", method = "GET", host = "example.com" } = asked;
  const headers = Object.fromEntries(
    Object.entries(asked.headers ?? {}).map(([name, value]) => [name, [value].flat()]),
  );
  const remoteIp = forwardedFor(headers) ?? sourceIp;
  const connection = { peer, sourceIp, remoteIp, destinationIp: "127.0.0.1", port, sni };
  const policies = authorizationPoliciesOf(snapshot, WORKLOAD);
  const claims = "refused" in outcome ? undefined : outcome.claims;
  const evaluation = evaluate({
    policies,
    trustDomains: TRUST_DOMAINS,
    canAsk: set.hasProvider,
    request: { protocol: "http", ...connection, method, host, path, headers, claims },
  });
  // A provider that is missing denies before anybody looks at tokens.
  if (evaluation.why === "custom-without-provider") return "403";
  if ("refused" in outcome) return String(outcome.status);
  return { allowed: "200", asked: "200 asked", denied: "403" }[evaluation.verdict];
}

/** The last address of the header, if it is one. */
function forwardedFor({
  "x-forwarded-for": values = [],
}: Readonly<Record<string, readonly string[]>>): string | undefined {
  const last = values.join(",").split(",").at(-1)?.trim() ?? "";
  return /^[0-9a-f.:]*[.:][0-9a-f.:]*$/i.test(last) ? last : undefined;
}
