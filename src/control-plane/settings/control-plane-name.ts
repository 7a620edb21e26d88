import { VERSION_TEXT } from "#lib/command/version-command.ts";
import { VERSION } from "#lib/version.ts";

/** How responses name who sent them: istioctl reads it, Envoy shows it. */
export function controlPlaneName(podName: string, revision: string): string {
  return JSON.stringify({ Component: "istiod", ID: podName || "istiod", Info: buildInfo(revision) });
}

/** What runs here, in the fields of Istio's programs. */
export function buildInfo(revision: string): object {
  return {
    version: VERSION_TEXT,
    revision: revision || "default",
    golang_version: `node ${process.version}`,
    status: "Clean",
    tag: VERSION,
  };
}
