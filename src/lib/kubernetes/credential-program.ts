/** Credentials that a program of the user prints, as `users[].user.exec` of a kubeconfig names it. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { isRecord } from "../json/is-record.ts";
import { MeshError } from "../mesh-error.ts";
import type { Credentials } from "./cluster-access.ts";

const run = promisify(execFile);
const TIME_LIMIT_MS = 60_000;
/** A token is not used in the last moments of its life: it has to arrive, too. */
const MARGIN_MS = 10_000;

export interface CredentialProgram {
  /** As it stands in the kubeconfig. */
  readonly exec: Readonly<Record<string, unknown>>;
  /** Of the kubeconfig. */
  readonly folder: string;
  readonly environment: Environment;
}

/** Variables that a program is started with. */
export type Environment = Readonly<Record<string, string | undefined>>;

interface Answer {
  readonly credentials: Credentials;
  readonly until: number;
}

/** Runs the program when there are no credentials yet, or when those it gave have ended. */
export function credentialProgram(program: CredentialProgram): () => Promise<Credentials> {
  let known: Answer | undefined;
  return async () => {
    if (known === undefined || Date.now() > known.until - MARGIN_MS) known = await ask(program);
    return known.credentials;
  };
}

async function ask({ exec, folder, environment }: CredentialProgram): Promise<Answer> {
  const command = String(exec.command ?? "");
  const args = Array.isArray(exec.args) ? exec.args.map(String) : [];
  const apiVersion = String(exec.apiVersion ?? "client.authentication.k8s.io/v1");
  const info = { apiVersion, kind: "ExecCredential", spec: { interactive: false } };
  const env = { ...environment, ...variablesOf(exec.env), KUBERNETES_EXEC_INFO: JSON.stringify(info) };
  try {
    // A bare name is looked for in PATH, one with a slash from the folder of the kubeconfig: so kubectl does.
    const { stdout } = await run(command, args, { cwd: folder, env, timeout: TIME_LIMIT_MS });
    return readAnswer(JSON.parse(stdout));
  } catch (cause) {
    throw new MeshError("KUBE_CREDENTIALS_FAILED", `"${command}", which kubeconfig names for credentials, gave none`, {
      cause,
    });
  }
}

function readAnswer(answer: unknown): Answer {
  const status = isRecord(answer) && isRecord(answer.status) ? answer.status : {};
  const [token, certificate, key] = [status.token, status.clientCertificateData, status.clientKeyData].map(textOf);
  if (token === undefined && certificate === undefined) throw new Error("its answer has neither token nor certificate");
  const until = Date.parse(textOf(status.expirationTimestamp) ?? "");
  const authorization = token === undefined ? undefined : `Bearer ${token}`;
  return {
    credentials: { authorization, certificate, key },
    until: Number.isNaN(until) ? Number.POSITIVE_INFINITY : until,
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function variablesOf(list: unknown): Readonly<Record<string, string>> {
  const items = Array.isArray(list) ? list.filter(isRecord) : [];
  return Object.fromEntries(items.map(({ name, value }) => [String(name), String(value)]));
}
