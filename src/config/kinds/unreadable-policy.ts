/**
 * Security objects that cannot be read. Such an object denies what it could have denied: whoever asks for protection and
 * makes a mistake must not end up without any. So what is readable of it (name, namespace, selector, action) narrows down
 * whom it concerns, and whatever is not readable counts as everything.
 */
import { parseGoBool } from "#lib/go/go-bool.ts";
import { isRecord } from "#lib/json/is-record.ts";
import type { ConfigObject, Metadata } from "../schema/config-object.ts";
import { list, message } from "../schema/message.ts";
import { parse } from "../schema/parse.ts";
import { type Attachment, checkAttachment } from "../selection/check.ts";
import { targetReferenceSchema, workloadSelectorSchema } from "../selection/schema.ts";
import { DRY_RUN } from "../terms/dry-run.ts";
import { REVISION_LABEL } from "../terms/revision.ts";
import type { AuthorizationPolicy } from "./authorization-policy/schema.ts";

/** A DENY policy in place of the object, whose kind it keeps. */
export interface UnreadablePolicy extends AuthorizationPolicy {
  /** Why the object cannot be read. */
  readonly unreadable: string;
  /** The object selects workloads, but nobody can tell which: all of its namespace may be meant. */
  readonly selectsUnknown?: true;
}

/** A policy that is enforced: as users wrote it, or in place of one that cannot be read. */
export type EnforcedPolicy = AuthorizationPolicy & Partial<UnreadablePolicy>;

/** The namespace of an object whose namespace cannot be read: it may be any. */
export const ANY_NAMESPACE = "";

const GROUP = "security.istio.io";
const KINDS = ["AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"] as const;

/** Whether an object of this kind denies something while it cannot be read. */
export function isSecurityKind(kind: string): boolean {
  return KINDS.some((known) => known === kind);
}

/** What stands in for a raw object that cannot be read; undefined when it could not have denied anything. */
export function unreadablePolicy(raw: unknown, reason: string): ConfigObject<UnreadablePolicy> | undefined {
  if (!isRecord(raw)) return undefined;
  const kind = securityKind(raw);
  if (kind === undefined || (kind === "AuthorizationPolicy" && deniesNothing(raw))) return undefined;
  const metadata = isRecord(raw.metadata) ? raw.metadata : {};
  const isPlaced = raw.metadata === undefined || raw.metadata === null || isRecord(raw.metadata);
  const labels = isRecord(metadata.labels) ? metadata.labels : {};
  const revision = labels[REVISION_LABEL];
  return denial(kind, reason, {
    name: typeof metadata.name === "string" ? metadata.name : "",
    namespace: isPlaced ? namespaceOf(metadata.namespace) : ANY_NAMESPACE,
    labels: typeof revision === "string" ? { [REVISION_LABEL]: revision } : {},
    attachment: readAttachment(raw.spec),
  });
}

/** What stands in for a text that is not YAML, but mentions a security object. */
export function unreadableText(text: string, reason: string): readonly ConfigObject<UnreadablePolicy>[] {
  if (!mentionsPolicy(text)) return [];
  const mentioned = [...text.matchAll(/\bnamespace\b/g)].length;
  const named = [...text.matchAll(NAMESPACE_FIELD)].flatMap(([, name]) => name ?? []);
  const namespaces = mentioned === 0 ? ["default"] : named.length === mentioned ? new Set(named) : [ANY_NAMESPACE];
  const [, name = ""] = /\bname\b["']?\s*:\s*["']?([a-z0-9][a-z0-9.-]*)/.exec(text) ?? [];
  return [...namespaces].map((namespace) =>
    denial("AuthorizationPolicy", reason, { name, namespace, labels: {}, attachment: {} }),
  );
}

/** Whether a text may hold a security object. */
export function mentionsPolicy(text: string): boolean {
  return MENTIONS_POLICY.test(text);
}

const MENTIONS_POLICY = new RegExp(
  `security\\.istio\\.io|\\bkind\\b["']?[ \\t]*(?::[ \\t]*)?["']?(${KINDS.join("|")})\\b`,
  "i",
);
const NAMESPACE_FIELD = /\bnamespace\b["']?[ \t]*:[ \t]*["']?([a-z0-9][a-z0-9-]*)["']?[ \t]*(?=[,}\r\n]|$)/g;

interface Readable extends Pick<Metadata, "name" | "namespace" | "labels"> {
  readonly attachment: ReadAttachment;
}

function denial(kind: string, reason: string, readable: Readable): ConfigObject<UnreadablePolicy> {
  const { attachment: found, ...metadata } = readable;
  // Elsewhere than in its own namespace an object selects nothing, or labels alone.
  const selectsAnywhere =
    kind !== "PeerAuthentication" && found.targetRef === undefined && found.targetRefs === undefined;
  const isPlaced = metadata.namespace !== ANY_NAMESPACE || selectsAnywhere;
  const attachment: ReadAttachment = isPlaced ? found : { selectsUnknown: true };
  return {
    kind,
    // The oldest of its kind: where one object of several decides, it is this one.
    metadata: { ...metadata, annotations: {}, createdAt: 0 },
    spec: { ...attachment, action: "DENY", rules: [{}], unreadable: reason },
    origin: undefined,
  };
}

/** Groups of others that have a kind of one of these names. */
const FOREIGN_GROUPS: readonly string[] = ["policy.linkerd.io"];

/**
 * The kind of a security object, as far as it can be told. An unknown kind of the group counts as the one that can deny most;
 * a group that nobody knows is a misspelt one.
 */
function securityKind({ apiVersion, kind }: Readonly<Record<string, unknown>>): string | undefined {
  const version = typeof apiVersion === "string" ? apiVersion.toLowerCase() : "";
  const group = version.includes("/") ? version.slice(0, version.lastIndexOf("/")) : "";
  const isGroup = group === GROUP || version === GROUP;
  const known = KINDS.find((name) => typeof kind === "string" && name.toLowerCase() === kind.toLowerCase());
  if (known !== undefined) return FOREIGN_GROUPS.includes(group) ? undefined : known;
  return isGroup ? "AuthorizationPolicy" : undefined;
}

/** A policy that records only. Of one whose action cannot be read nobody knows. */
function deniesNothing({ metadata, spec }: Readonly<Record<string, unknown>>): boolean {
  if (spec !== undefined && spec !== null && !isRecord(spec)) return false;
  const action = spec?.action ?? "ALLOW";
  if (action === "AUDIT") return true;
  const annotations = isRecord(metadata) && isRecord(metadata.annotations) ? metadata.annotations : {};
  const dryRun = annotations[DRY_RUN];
  return (action === "ALLOW" || action === "DENY") && typeof dryRun === "string" && parseGoBool(dryRun) === true;
}

function namespaceOf(namespace: unknown): string {
  if (namespace === undefined || namespace === null || namespace === "") return "default";
  return typeof namespace === "string" ? namespace : ANY_NAMESPACE;
}

type ReadAttachment = Attachment & Pick<UnreadablePolicy, "selectsUnknown">;

const attachmentSchema = message({
  selector: workloadSelectorSchema,
  targetRef: targetReferenceSchema,
  targetRefs: list(targetReferenceSchema),
});
const ATTACHMENT_FIELD = /^(selector|target_?refs?)$/i;

/** Whom the object concerns. Without a readable answer it is everybody. */
function readAttachment(spec: unknown): ReadAttachment {
  if (spec === undefined || spec === null) return {};
  if (!isRecord(spec)) return { selectsUnknown: true };
  const given = Object.entries(spec).filter(([name, value]) => ATTACHMENT_FIELD.test(name) && value !== null);
  if (given.length === 0) return {};
  const { value, problems } = parse(attachmentSchema, Object.fromEntries(given), "spec");
  if (value === undefined || problems.length > 0) return { selectsUnknown: true };
  return [...checkAttachment(value)].some(({ severity }) => severity === "error") ? { selectsUnknown: true } : value;
}
