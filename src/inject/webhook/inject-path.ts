/** Variables in the path of the webhook, for clusters whose control plane is elsewhere: `/inject/cluster/c1/net/n1`. */

const VARIABLES: Readonly<Record<string, string>> = { cluster: "ISTIO_META_CLUSTER_ID", net: "ISTIO_META_NETWORK" };

/** Names and values by turns; a slash in a value is written `--slash--`. An older form is `:ENV:NAME=VALUE`. */
export function variablesOfPath(path: string): Readonly<Record<string, string>> {
  const rest = path.replace(/\/$/, "").split("/").slice(2).join("/");
  const pairs = rest.startsWith(":ENV:") ? assignments(rest) : segments(rest);
  return Object.fromEntries(
    pairs.map(([name, value]) => [VARIABLES[name] ?? name.toUpperCase(), value]).filter(([name]) => name !== ""),
  );
}

function assignments(text: string): readonly (readonly [name: string, value: string])[] {
  return text.split(":ENV:").flatMap((pair) => {
    const match = /^([^=]+)=(.*)$/s.exec(pair);
    return match === null ? [] : [[match[1] ?? "", match[2] ?? ""] as const];
  });
}

function segments(text: string): readonly (readonly [name: string, value: string])[] {
  const parts = text.split("/");
  return parts.flatMap((name, index) => {
    const value = parts[index + 1];
    return index % 2 === 0 && value !== undefined ? [[name, value.replaceAll("--slash--", "/")] as const] : [];
  });
}
