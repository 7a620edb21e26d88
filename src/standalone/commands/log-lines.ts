/** Logs line by line, with the name and colour of whoever printed them. */
import type { Style } from "#lib/print/style.ts";
import { shortestName } from "../mesh/mesh.ts";
import type { MemberStatus } from "../status/status.ts";

/** Cuts what arrives into lines; the last one counts when its end has arrived. */
export function throughLines(onLine: (line: string) => void): (chunk: Buffer) => void {
  const decoder = new TextDecoder();
  let rest = "";
  return (chunk) => {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) onLine(line);
  };
}

/** What the lines of a member begin with, as wide as the longest name of all. */
export function prefixed(index: number, all: readonly MemberStatus[], style: Style): string {
  const names = all.map((member) => shortestName(member, all));
  const width = Math.max(...names.map((name) => name.length));
  return `${style.numbered(index, (names[index] ?? "").padEnd(width))} | `;
}

/** Envoy's access log begins with a time in brackets, or is an object; what agents and Envoys say otherwise is neither. */
export function accessOnly(line: string): boolean {
  return (
    /^\[\d{4}-\d\d-\d\dT[\d:.]+Z\] (?!\[)/.test(line) ||
    (line.startsWith("{") && /"(response_code|start_time|upstream_cluster)"/.test(line))
  );
}
