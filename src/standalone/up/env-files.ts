/** Variables that a workload takes from files. */
import { readFile } from "node:fs/promises";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import type { App, Mesh } from "../mesh/mesh.ts";

const ASSIGNMENT = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)=(.*)$/;

/** The mesh with the variables of all files filled in; those that a workload gives itself win, and later files over earlier ones. */
export async function withEnvFiles(mesh: Mesh): Promise<Mesh> {
  const texts = new Map<string, Readonly<Record<string, string>>>();
  for (const { workload, namespace, app } of mesh.members) {
    for (const file of app?.envFrom ?? []) {
      if (texts.has(file)) continue;
      const line = mesh.lines[`${workload}.${namespace}`] ?? 1;
      texts.set(file, parseEnvFile(await read(file, `${mesh.file}:${line}: workload "${workload}"`), file));
    }
  }
  const fill = (app: App): App => ({
    ...app,
    env: Object.assign({}, ...app.envFrom.map((file) => texts.get(file)), app.env),
  });
  return { ...mesh, members: mesh.members.map((member) => ({ ...member, app: member.app && fill(member.app) })) };
}

/** Lines `NAME=value`; blank ones and those that start with # are skipped, a pair of quotes around a value is taken off. */
export function parseEnvFile(text: string, file: string): Readonly<Record<string, string>> {
  const values: Record<string, string> = Object.create(null);
  for (const [i, raw] of text.split(/\r?\n/).entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const [, name, value = ""] = ASSIGNMENT.exec(line) ?? [];
    if (name === undefined || value.includes("\0")) {
      throw new MeshError("ENV_FILE_INVALID", `${file}:${i + 1}: must be NAME=value, or start with #`);
    }
    values[name] = unquoted(value);
  }
  return values;
}

function unquoted(value: string): string {
  const [, , inner] = /^(["'])(.*)\1$/.exec(value) ?? [];
  return inner ?? value;
}

async function read(file: string, where: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new MeshError(
      "ENV_FILE_INVALID",
      `${where}: envFrom names "${file}", which cannot be read: ${errorText(cause)}`,
    );
  }
}
