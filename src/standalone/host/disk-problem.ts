import { MeshError } from "#lib/mesh-error.ts";

const REASONS: Readonly<Record<string, string>> = {
  ENOSPC: "the disk is full",
  EROFS: "the file system is read-only",
  EDQUOT: "the disk quota is used up",
};

/** A disk that gives out is said so, whatever was written to it; any other error is passed on as it is. */
export function diskProblem(error: unknown, folder: string): unknown {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  const reason = REASONS[code];
  if (reason === undefined) return error;
  return new MeshError(
    "STATE_UNWRITABLE",
    `Cannot keep state in "${folder}": ${reason}; make room, or choose another folder with --state`,
  );
}
