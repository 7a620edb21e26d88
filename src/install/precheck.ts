/** What stands in the way of an installation, found out before anything is changed. */
import { isRecord } from "#lib/json/is-record.ts";
import { ApiError, type RawObject } from "#lib/kubernetes/api-client.ts";
import { ResourceDirectory } from "#lib/kubernetes/resource-directory.ts";
import { pathOf, type ResourceType } from "#lib/kubernetes/resource-types.ts";
import { objectName } from "./difference.ts";
import { OWNER_LABEL } from "./manifest.ts";
import type { PatientApi } from "./patient-api.ts";

/** Older ones lack what the definitions of kinds use. */
const OLDEST_MINOR = 29;
/** What server-side apply needs, and to take away what is not wanted any more. */
const VERBS = ["create", "patch", "list", "delete"];

interface ServerVersion {
  readonly major: string;
  readonly minor: string;
  readonly gitVersion: string;
}

/** One line for each obstacle. */
export async function obstacles(
  api: PatientApi,
  objects: readonly RawObject[],
  owner: string,
): Promise<readonly string[]> {
  const directory = new ResourceDirectory(api);
  return [
    ...tooOld(await api.call<ServerVersion>({ path: "/version" })),
    ...(await missingRights(api, directory, objects)),
    ...(await foreign(api, directory, { objects, owner })),
  ];
}

function tooOld({ major, minor, gitVersion }: ServerVersion): readonly string[] {
  const isOld = major === "1" && Number.parseInt(minor, 10) < OLDEST_MINOR;
  return isOld ? [`Kubernetes ${gitVersion} is too old: 1.${OLDEST_MINOR} or newer is needed`] : [];
}

/** Rights that we need and have not, each told once with the rule to add. */
async function missingRights(
  api: PatientApi,
  directory: ResourceDirectory,
  objects: readonly RawObject[],
): Promise<readonly string[]> {
  const types = new Map<string, ResourceType>();
  for (const { apiVersion = "", kind = "" } of objects) {
    const type = await directory.typeOf(apiVersion, kind);
    if (type !== undefined) types.set(`${type.group}/${type.plural}`, type);
  }
  const answers = await Promise.all([...types.values()].map((type) => missingVerbs(api, type)));
  return answers.flat();
}

async function missingVerbs(api: PatientApi, { group, plural }: ResourceType): Promise<readonly string[]> {
  const allowed = await Promise.all(VERBS.map((verb) => mayDo(api, { group, resource: plural, verb })));
  const missing = VERBS.filter((_, i) => allowed[i] !== true);
  if (missing.length === 0) return [];
  const rule = `{apiGroups: ["${group}"], resources: [${plural}], verbs: [${missing.join(", ")}]}`;
  return [
    `you may not ${missing.join(", ")} ${group === "" ? plural : `${plural}.${group}`}; a rule that allows it: ${rule}`,
  ];
}

async function mayDo(api: PatientApi, resourceAttributes: Readonly<Record<string, string>>): Promise<boolean> {
  const { status } = await api.call({
    method: "POST",
    path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
    body: { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", spec: { resourceAttributes } },
  });
  return isRecord(status) && status.allowed === true;
}

/** Control planes and gateways that somebody else, or another revision, has under our names. */
async function foreign(
  api: PatientApi,
  directory: ResourceDirectory,
  { objects, owner }: { readonly objects: readonly RawObject[]; readonly owner: string },
): Promise<readonly string[]> {
  const found: string[] = [];
  for (const object of objects.filter(({ kind }) => kind === "Deployment")) {
    const type = await directory.typeOf(object.apiVersion ?? "", object.kind ?? "");
    if (type === undefined) continue;
    try {
      const { metadata } = await api.call({ path: pathOf(type, object.metadata) });
      const has = metadata.labels?.[OWNER_LABEL];
      if (has !== owner) found.push(`${objectName(object)} is there and not ours${ofWhom(has, object)}`);
    } catch (problem) {
      if (!(problem instanceof ApiError) || problem.status !== 404) throw problem;
    }
  }
  return found;
}

function ofWhom(revision: string | undefined, { metadata }: RawObject): string {
  if (revision === undefined) return "";
  const hint = metadata.name.startsWith("istiod")
    ? ""
    : `: leave it there by --set gateways.${metadata.name}.enabled=false`;
  return ` but of revision ${revision}${hint}`;
}
