/** A workload that an agent is told to serve: a JSON file. */
import { isAbsolute } from "node:path";
import { isRecord } from "#lib/json/is-record.ts";
import { MeshError } from "#lib/mesh-error.ts";
import type { ProxyFlags } from "../prepare.ts";

export interface WorkloadFile {
  /** Its working folder, with what an injected pod has below `/`. */
  readonly folder: string;
  /** Begins the command line of programs that run where the workload does: `nsenter --net=... setpriv ...`. */
  readonly enter: readonly string[];
  /** The user that `enter` ends with. */
  readonly user: number;
  /** The environment of its agent. Nothing is inherited. */
  readonly env: Readonly<Record<string, string>>;
  /** Of `pilot-agent proxy`, by name. */
  readonly flags: ProxyFlags;
  /** `statusPort` of its ProxyConfig. */
  readonly statusPort: number;
  /** Where its agent's and Envoy's lines go; empty for those of the whole. */
  readonly log: string;
}

const PROXY_USER = 1337;
const STATUS_PORT = 15020;
const FLAGS: ProxyFlags = {
  type: "sidecar",
  domain: "",
  meshConfig: "./etc/istio/config/mesh",
  stsPort: 0,
  tokenManagerPlugin: "",
  serviceCluster: "istio-proxy",
  proxyLogLevel: "warning",
  proxyComponentLogLevel: "",
  concurrency: 0,
  templateFile: "",
  outlierLogPath: "",
  profiling: false,
  logAsJson: false,
};
const FIELDS = ["folder", "enter", "user", "env", "flags", "statusPort", "log"];

/** Throws when it makes no sense, with all that is wrong. */
export function parseWorkloadFile(json: string): WorkloadFile {
  let given: unknown;
  try {
    given = JSON.parse(json);
  } catch (cause) {
    throw invalid("it is no JSON", cause);
  }
  if (!isRecord(given)) throw invalid("it must be an object");
  const problems = [
    ...Object.keys(given).flatMap((name) => (FIELDS.includes(name) ? [] : [`there is no field "${name}"`])),
    ...checks(given),
  ];
  if (problems.length > 0) throw invalid(problems.join("; "));
  const fields = given as Partial<Omit<WorkloadFile, "flags">> & { folder: string; flags?: Partial<ProxyFlags> };
  return {
    folder: fields.folder,
    enter: fields.enter ?? [],
    user: fields.user ?? PROXY_USER,
    env: fields.env ?? {},
    flags: { ...FLAGS, ...fields.flags },
    statusPort: fields.statusPort ?? STATUS_PORT,
    log: fields.log ?? "",
  };
}

type Fields = Readonly<Record<string, unknown>>;

function checks({ folder, enter = [], user = 0, env = {}, flags = {}, statusPort = 0, log = "" }: Fields): string[] {
  const known = FLAGS as unknown as Fields;
  const wrongFlags = isRecord(flags)
    ? Object.entries(flags)
        .filter(([name, value]) => typeof value !== typeof known[name])
        .map(([name]) => `flags.${name}`)
    : ["flags"];
  return [
    typeof folder === "string" && isAbsolute(folder) ? "" : "folder must be an absolute path",
    isTexts(enter) ? "" : "enter must be a list of words",
    isNumber(user, 2 ** 31) ? "" : "user must be a user id",
    isRecord(env) && isTexts(Object.values(env)) ? "" : "env must be an object of texts",
    ...wrongFlags.map((name) => `${name} is not what pilot-agent proxy takes`),
    isNumber(statusPort, 65_535) ? "" : "statusPort must be a port",
    typeof log === "string" ? "" : "log must be a path",
  ].filter((problem) => problem !== "");
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

function isNumber(value: unknown, most: number): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= most;
}

function invalid(problem: string, cause?: unknown): MeshError {
  return new MeshError("WORKLOAD_FILE_INVALID", problem, cause === undefined ? {} : { cause });
}
