/** What the API server itself refuses, by the definitions that are made from our schemas. */
import { globSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { customResourceDefinitions } from "#config/crd/definitions.ts";
import { isRecord } from "#lib/json/is-record.ts";
import { ApiError, type KubernetesApi } from "#lib/kubernetes/api-client.ts";
import { readDocuments } from "#lib/yaml/read.ts";
import { type ApiServer, NO_KUBERNETES, startApiServer } from "../../support/kubernetes/api-server.ts";
import type { Case, Group, Outcome } from "../harness.ts";

const FOLDER = "pkg/config/validation/testdata/crds";

export const crdValidation: Group = {
  name: "CRD validation",
  cases: async (folder) => {
    const files = globSync(join(folder, FOLDER, "*.yaml")).sort();
    if (files.length === 0) return [];
    if (NO_KUBERNETES !== undefined) return files.map((file) => leftOut(basename(file), NO_KUBERNETES ?? ""));
    // One server for all cases, which are asked at once: a group has no end at which it could be stopped.
    const server = await startApiServer();
    try {
      const plurals = await install(server);
      const api = await server.api();
      return (await Promise.all(files.map((file) => casesOf(file, api, plurals)))).flat();
    } finally {
      await server[Symbol.asyncDispose]();
    }
  },
};

function leftOut(name: string, reason: string): Case {
  return { name, check: () => ({ leftOut: reason }) };
}

/** Gives the plural of each kind. */
async function install(server: ApiServer): Promise<ReadonlyMap<string, string>> {
  const definitions = customResourceDefinitions();
  await server.define(definitions);
  return new Map(
    definitions.map(({ spec }) => {
      const names = isRecord(spec) && isRecord(spec.names) ? spec.names : {};
      return [String(names.kind), String(names.plural)];
    }),
  );
}

async function casesOf(file: string, api: KubernetesApi, plurals: ReadonlyMap<string, string>): Promise<Case[]> {
  const documents = readDocuments(await readFile(file, "utf8"));
  return Promise.all(
    documents.map(async ({ value, line }): Promise<Case> => {
      const name = `${basename(file)}:${line}`;
      if (!isRecord(value)) return { name, check: () => ({ differs: () => "is no object" }) };
      const { _err: wanted, ...object } = value;
      const plural = plurals.get(String(object.kind));
      if (plural === undefined) return leftOut(name, `kind ${String(object.kind)} has no effect yet`);
      const outcome = await outcomeOf(api, plural, object, typeof wanted === "string" ? wanted : undefined);
      return { name, check: () => outcome };
    }),
  );
}

async function outcomeOf(api: KubernetesApi, plural: string, object: object, wanted?: string): Promise<Outcome> {
  const { apiVersion } = object as { readonly apiVersion?: string };
  const path = `/apis/${apiVersion}/namespaces/default/${plural}`;
  try {
    await api.call({ method: "POST", path, query: { dryRun: "All", fieldValidation: "Strict" }, body: object });
    return wanted === undefined ? "passed" : { differs: () => `accepted, but it should be refused: ${wanted}` };
  } catch (problem) {
    if (!(problem instanceof ApiError)) throw problem;
    const { message } = problem;
    if (wanted !== undefined && message.includes(wanted)) return "passed";
    return { differs: () => `refused: ${message}\nwanted: ${wanted ?? "accepted"}` };
  }
}
