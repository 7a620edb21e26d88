/** Where a mesh is reached from this machine. */
import { spawn } from "node:child_process";
import { MeshError } from "#lib/mesh-error.ts";
import { memberKey } from "../mesh/mesh.ts";
import type { MeshStatus } from "../status/status.ts";

/** The address of a published port: that of the workload, or the only one there is, with the first page behind it. */
export function publishedUrl({ name, published, members }: MeshStatus, workload: string | undefined): string {
  const keys = members
    .filter((member) => [member.name, member.workload, memberKey(member)].includes(workload ?? ""))
    .map(memberKey);
  const found = workload === undefined ? published : published.filter(({ member }) => keys.includes(member));
  const [first, second] = found;
  if (first !== undefined && (second === undefined || workload !== undefined || samePlace(found))) {
    const page = first.pages.find(({ host }) => host === "*") ?? first.pages[0];
    return `http://${first.address}${page?.path ?? "/"}`;
  }
  const choices = [...new Set(published.map(({ member }) => member))].join(", ");
  if (first !== undefined) {
    throw new MeshError("MEMBER_AMBIGUOUS", `Several workloads publish a port: choose one of ${choices}`);
  }
  throw new MeshError(
    "NOTHING_PUBLISHED",
    `${workload === undefined ? `Mesh "${name}"` : `"${workload}"`} publishes no port${choices === "" ? "" : `; ${choices} do`}: add publish to it in mesh.yaml`,
  );
}

function samePlace(published: MeshStatus["published"]): boolean {
  return new Set(published.map(({ member }) => member)).size === 1;
}

/** How to show an address to the person; undefined where there is no screen. */
export function browserFor(
  env: Readonly<Record<string, string | undefined>>,
): ((url: string) => Promise<void>) | undefined {
  if ((env.DISPLAY ?? env.WAYLAND_DISPLAY ?? "") === "") return undefined;
  // A person who became root has a browser under the own account alone.
  const user = env.SUDO_USER;
  const argv = user === undefined ? ["xdg-open"] : ["sudo", "-u", user, "xdg-open"];
  return (url) =>
    new Promise((resolve) => {
      const [program = "", ...args] = argv;
      const child = spawn(program, [...args, url], { stdio: "ignore", detached: true });
      // The address has been printed: without a browser it can be copied.
      child.once("error", () => resolve());
      child.once("spawn", () => {
        child.unref();
        resolve();
      });
    });
}
