/** Tokens of Kubernetes, about which its API server is asked: it knows which pods and accounts there still are. */
import { isRecord } from "#lib/json/is-record.ts";
import type { KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { refusalText } from "#lib/kubernetes/missing-right.ts";
import { formatSpiffeId } from "#lib/pki/spiffe-id.ts";
import type { Authentication, Authenticator } from "./authenticator.ts";
import { bearerToken, MAX_TOKEN_CHARACTERS, serviceAccountOf } from "./jwt.ts";

export interface TokenReviewOptions {
  readonly api: KubernetesApi;
  /** The API server of a cluster that a caller names; undefined for one that is not of the mesh. All are ours when not given. */
  readonly apiOf?: ((clusterId: string) => KubernetesApi | undefined) | undefined;
  /** At least one of them has to be among the token's; empty for tokens that are meant for the API server itself. */
  readonly audiences: readonly string[];
  /** Of the mesh, as it is when a token comes. */
  readonly trustDomain: () => string;
}

const TIME_LIMIT_MS = 10_000;

/** Believes tokens that the API server believes. */
export function tokenReviewAuthenticator(options: TokenReviewOptions): Authenticator {
  return async ({ authorization, clusterId = "" }) => {
    if (authorization === undefined) return undefined;
    const token = bearerToken(authorization);
    if (token === undefined) return { refused: "the authorization header holds no bearer token" };
    if (token.length > MAX_TOKEN_CHARACTERS) {
      return { refused: `the token has more than ${MAX_TOKEN_CHARACTERS} characters` };
    }
    const api = clusterId === "" || options.apiOf === undefined ? options.api : options.apiOf(clusterId);
    if (api === undefined)
      return { refused: `the caller says it is in cluster "${clusterId}", which is not of the mesh` };
    try {
      return callerOf(await review(token, { ...options, api }), options);
    } catch (problem) {
      return { refused: `the token cannot be checked: ${refusalText(problem)}` };
    }
  };
}

type Status = Readonly<Record<string, unknown>>;

async function review(token: string, { api, audiences }: TokenReviewOptions): Promise<Status> {
  const answer = await api.call({
    method: "POST",
    path: "/apis/authentication.k8s.io/v1/tokenreviews",
    body: { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", spec: { token, audiences } },
    signal: AbortSignal.timeout(TIME_LIMIT_MS),
  });
  return isRecord(answer.status) ? answer.status : {};
}

function callerOf(status: Status, { audiences, trustDomain }: TokenReviewOptions): Authentication {
  if (status.authenticated !== true) {
    const reason =
      typeof status.error === "string" && status.error !== "" ? status.error : "it is not one of the cluster";
    return { refused: `the API server does not accept the token: ${reason}` };
  }
  // A server that knows no audiences leaves them out: then it has not looked at them.
  const confirmed = Array.isArray(status.audiences) ? status.audiences : [];
  if (audiences.length > 0 && !audiences.some((audience) => confirmed.includes(audience))) {
    return { refused: `the token is not meant for ${audiences.join(" or ")}` };
  }
  const user = isRecord(status.user) ? status.user : {};
  const account = serviceAccountOf(user.username);
  if (account === undefined) return { refused: "the token is not that of a service account" };
  const [pod, podUid] = ["pod-name", "pod-uid"].map((name) => extraOf(user.extra, name));
  const identity = formatSpiffeId({ trustDomain: trustDomain(), ...account });
  return { caller: { identity, ...account, provedBy: "jwt", ...(pod && { pod }), ...(podUid && { podUid }) } };
}

/** What a token says of the pod that it is bound to. */
function extraOf(extra: unknown, name: string): string | undefined {
  const values = isRecord(extra) ? extra[`authentication.kubernetes.io/${name}`] : undefined;
  const [value] = Array.isArray(values) ? values : [];
  return typeof value === "string" ? value : undefined;
}
