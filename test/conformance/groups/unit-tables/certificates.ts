/** Tables about certificates, keys, tokens and identities. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { parseDuration } from "@mizzen/go-text/duration";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { joinPem, rotationDelayMs } from "#agent/sds/certificate.ts";
import { parseFileSecret } from "#agent/sds/file-secrets.ts";
import { jwtAudience, jwtExpiry } from "#agent/sts/jwt.ts";
import { forwardedCertificateAuthenticator } from "#authn/forwarded-certificate.ts";
import { bearerToken, jwtAuthenticator } from "#authn/jwt.ts";
import { announcementOf } from "#ca/authority/root-rotation.ts";
import { impersonationRefusal } from "#ca/service/node-agents.ts";
import { callCredentials } from "#lib/grpc/call-credentials.ts";
import { requestedPublicKey } from "#lib/pki/certificate-request.ts";
import { generalNames } from "#lib/pki/issue.ts";
import { parsePem } from "#lib/pki/pem.ts";
import type { Caller } from "#model/ports.ts";
import { compareJson } from "../../compare.ts";
import type { Outcome } from "../../harness.ts";
import { byRow, leftOut, unitTables } from "../../unit-tables.ts";

/** Go's numbers of public key algorithms. */
const ALGORITHMS: Readonly<Record<string, number>> = { rsa: 1, ec: 3 };

/** The value, or undefined when there is none to be had. */
function attempt<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch {
    return undefined;
  }
}

/** Whether we take what Istio takes and refuse what it refuses. The words differ. */
function sameVerdict(accepted: boolean, errorMessage: string): Outcome {
  return compareJson(accepted, errorMessage === "");
}

/** Whether a token for an audience is believed by a rule that wants others. */
async function isBelieved({ audience, wanted }: Record<"audience" | "wanted", readonly string[]>): Promise<boolean> {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const jwks = JSON.stringify({ keys: [await exportJWK(publicKey)] });
  const rule = { issuer: "me", audiences: wanted, keys: { kind: "inline", jwks } } as const;
  const authenticate = jwtAuthenticator(rule, { now: Date.now, trustDomain: () => "cluster.local" });
  const claims = { iss: "me", sub: "system:serviceaccount:a:b", aud: [...audience] };
  const token = await new SignJWT(claims).setProtectedHeader({ alg: "ES256" }).setExpirationTime("1h").sign(privateKey);
  const result = await authenticate({ authorization: `Bearer ${token}`, certificate: undefined });
  return result !== undefined && "caller" in result;
}

/** Ours takes the last of the identities. */
interface XfccRow {
  readonly caller?: { readonly Identities: readonly string[] };
  readonly xfccHeader: string;
}

interface NodeRow {
  readonly caller: Readonly<Partial<Record<"PodName" | "PodNamespace" | "PodServiceAccount" | "PodUID", string>>>;
  readonly pods?: readonly Readonly<Record<"account" | "name" | "namespace" | "node" | "uid", string>>[];
  readonly requestedIdentityString: string;
  readonly trustedAccounts?: readonly string[];
  readonly wantErr: string;
}

function nodeCaller({
  PodName: pod = "",
  PodNamespace = "",
  PodServiceAccount = "",
  PodUID = "",
}: NodeRow["caller"]): Caller {
  const account = { namespace: PodNamespace, serviceAccount: PodServiceAccount };
  return { identity: "", ...account, provedBy: "jwt", pod, podUid: PodUID };
}

const certificates = (text: string) => parsePem(text).map(({ pem }) => new X509Certificate(pem));

export const certificateTables = unitTables(
  "unit tables: certificates",
  ["security/pkg/nodeagent", "security/pkg/pki", "security/pkg/server", "security/pkg/util", "pkg/security"],
  {
    rotateTime: byRow<{
      createdSecondsFromNow: number;
      expireSecondsFromNow: number;
      gracePeriodRatio: number;
      expected: string;
    }>(({ createdSecondsFromNow, expireSecondsFromNow, gracePeriodRatio, expected }) => {
      const certificate = { createdAt: createdSecondsFromNow * 1000, expiresAt: expireSecondsFromNow * 1000 };
      const rotation = { gracePeriodRatio, gracePeriodRatioJitter: 0 };
      return compareJson(rotationDelayMs(certificate, rotation, { now: 0, random: 0 }), parseDuration(expected));
    }),
    concatCerts: byRow<{ certs: readonly string[]; expected: string }>(({ certs, expected }) =>
      compareJson(joinPem(certs), expected),
    ),
    SdsCertificateConfigFromResourceName: byRow<{
      resource: string;
      key: boolean;
      root: boolean;
      output: { CertificatePath?: string; PrivateKeyPath?: string; CaCertificatePath?: string };
    }>(({ resource, key, root, output }) => {
      const secret = parseFileSecret(resource) ?? {};
      const {
        certificate,
        key: privateKey,
        roots,
      } = { certificate: undefined, key: undefined, roots: undefined, ...secret };
      return compareJson(
        { key: privateKey !== undefined, root: roots !== undefined, paths: [certificate, privateKey, roots] },
        { key, root, paths: [output.CertificatePath, output.PrivateKeyPath, output.CaCertificatePath] },
      );
    }),
    GetExp: byRow<{ jwt: string; expectedExp?: string; expectedErr?: object }>(({ jwt, expectedExp, expectedErr }) => {
      if (expectedErr !== undefined) return sameVerdict(attempt(() => [jwtExpiry(jwt)]) !== undefined, "error");
      const wanted = expectedExp === undefined ? undefined : Date.parse(expectedExp);
      return compareJson(jwtExpiry(jwt), wanted);
    }),
    GetAud: byRow<{ jwt: string; aud?: readonly string[] }>(({ jwt, aud }) =>
      compareJson(
        attempt(() => jwtAudience(jwt)),
        aud,
      ),
    ),
    "CertUtil.GetWaitTime": byRow<{ cert: string; now: string; expectedWaitTime?: number; expectedErr: string }>(
      ({ cert, now, expectedWaitTime, expectedErr }) => {
        const [certificate] = attempt(() => certificates(cert)) ?? [];
        // A date here ends at milliseconds, Go's at nanoseconds.
        const [, whole = "", fraction = "0"] = /^([^.Z]+)(?:\.(\d+))?Z$/.exec(now) ?? [];
        const until = certificate === undefined ? 0 : announcementOf(certificate, 50) - Date.parse(`${whole}Z`);
        const wait = until / 1000 - Number(`0.${fraction}`);
        if (expectedErr !== "") return sameVerdict(wait > 0, expectedErr);
        return compareJson(Math.floor(wait), expectedWaitTime);
      },
    ),
    ParsePemEncodedCertificate: byRow<{ pem: string; publicKeyAlgo: number; errMsg: string }>(
      ({ pem, publicKeyAlgo, errMsg }) => {
        const [certificate] = attempt(() => certificates(pem)) ?? [];
        if (errMsg !== "") return sameVerdict(certificate !== undefined, errMsg);
        return compareJson(ALGORITHMS[certificate?.publicKey.asymmetricKeyType ?? ""], publicKeyAlgo);
      },
    ),
    ParsePemEncodedCertificateChain: byRow<{ pem: string; errMsg: string }>(({ pem, errMsg }) =>
      sameVerdict((attempt(() => certificates(pem)) ?? []).length > 0, errMsg),
    ),
    ParsePemEncodedCSR: byRow<{ pem: string; errMsg: string }>(async ({ pem, errMsg }) => {
      const refusal = await requestedPublicKey(pem).then(() => "", String);
      if (refusal.includes("RSA key has 1024 bits")) return { leftOut: "keys of 1024 bits are refused on purpose" };
      return sameVerdict(refusal === "", errMsg);
    }),
    GetRSAKeySize: byRow<{ pem: string; size: number; errMsg: string }>(({ pem, size, errMsg }) => {
      const key = attempt(() => createPrivateKey(pem));
      const bits = key?.asymmetricKeyDetails?.modulusLength;
      return errMsg === "" ? compareJson(bits, size) : sameVerdict(bits !== undefined, errMsg);
    }),
    BuildSubjectAltNameExtension: byRow<{ hosts: string; expectedExt: { Value: { $base64: string } } }>(
      ({ hosts, expectedExt }) =>
        compareJson(generalNames(hosts.split(",")).toString("base64"), expectedExt.Value.$base64),
    ),
    checkAudience: byRow<{ audToCheck: readonly string[]; audExpected: readonly string[]; expectRet: boolean }>(
      async ({ audToCheck, audExpected, expectRet }) =>
        compareJson(await isBelieved({ audience: audToCheck, wanted: audExpected }), expectRet),
    ),
    ExtractBearerToken: byRow<{ metadata: Record<string, readonly string[]>; expectedToken: string }>(
      ({ metadata: { authorization = [] }, expectedToken }) => {
        const values = (name: string) => (name === "authorization" ? authorization : []);
        const call = { values, certificate: undefined };
        return compareJson(bearerToken(callCredentials(call).authorization ?? "") ?? "", expectedToken);
      },
    ),
    XfccAuthenticator: byRow<XfccRow>(async ({ caller, xfccHeader }) => {
      const trustDomains = () => ["mesh.example.com"];
      const authenticate = forwardedCertificateAuthenticator({ ranges: [], trustDomains });
      const call = { authorization: undefined, certificate: undefined, peer: "127.0.0.1:2301" };
      const result = await authenticate({ ...call, forwarded: xfccHeader || undefined });
      const identity = result !== undefined && "caller" in result ? result.caller.identity : undefined;
      return compareJson(identity ?? "", caller?.Identities.at(-1) ?? "");
    }),
    NodeAuthorizer: byRow<NodeRow>(
      async ({ caller, pods = [], requestedIdentityString, trustedAccounts = [], wantErr }) => {
        const refused = await impersonationRefusal(nodeCaller(caller), requestedIdentityString, {
          trustedAccounts,
          pods: {
            pod: async (namespace, name) => {
              const found = pods.find((pod) => pod.namespace === namespace && pod.name === name);
              return found && { uid: found.uid, serviceAccount: found.account, node: found.node };
            },
            runs: async ({ namespace, serviceAccount, node }) =>
              pods.some((pod) => pod.namespace === namespace && pod.account === serviceAccount && pod.node === node),
          },
        });
        return compareJson(wantErr === "" ? refused === undefined : (refused?.includes(wantErr) ?? false), true);
      },
    ),
    DualUseCommonName: leftOut("our certificates have no common name: names are alternative names only"),
    VerifyCertificate: leftOut("a helper of Istio's own tests"),
  },
);
