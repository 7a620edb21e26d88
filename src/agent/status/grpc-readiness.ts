/** Whether clients that speak xDS themselves find what the bootstrap they are given names. */
import { existsSync, readFileSync } from "node:fs";
import { errorText } from "#lib/mesh-error.ts";

const PROVIDER = "file_watcher";
const FILES = ["certificate_file", "private_key_file", "ca_certificate_file"];

/** What is missing; undefined when nothing is. `resolve` makes paths those of the workload's place. */
export function grpcBootstrapProblem(
  path: string,
  resolve: (path: string) => string = (same) => same,
): string | undefined {
  let files: readonly string[];
  try {
    files = certificateFiles(JSON.parse(readFileSync(resolve(path), "utf8")));
  } catch (thrown) {
    return `failed loading ${path}: ${errorText(thrown)}`;
  }
  for (const file of files) {
    if (!existsSync(resolve(file))) return `${file} does not exist`;
  }
  return undefined;
}

/** Those of its certificate provider that watches files. */
function certificateFiles(bootstrap: unknown): readonly string[] {
  const providers = Object.values(objectOf(objectOf(bootstrap).certificate_providers)).map(objectOf);
  const configs = providers.filter(({ plugin_name: name }) => name === PROVIDER).map(({ config }) => objectOf(config));
  return configs.flatMap((config) =>
    FILES.map((name) => config[name]).filter((file): file is string => typeof file === "string" && file !== ""),
  );
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}
