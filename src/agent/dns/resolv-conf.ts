import { isIP } from "node:net";

export interface ResolvConf {
  /** Addresses of name servers. */
  readonly servers: readonly string[];
  readonly searchDomains: readonly string[];
}

/** Reads resolv.conf; as for every resolver, the last `search` or `domain` line counts. */
export function parseResolvConf(text: string): ResolvConf {
  const servers: string[] = [];
  let searchDomains: readonly string[] = [];
  for (const line of text.split("\n")) {
    const [keyword, ...values] = line
      .replace(/[#;].*/, "")
      .trim()
      .split(/\s+/);
    const [first] = values;
    if (keyword === "nameserver" && first !== undefined && isIP(first.split("%")[0] ?? "") !== 0) servers.push(first);
    else if (keyword === "search") searchDomains = values;
    else if (keyword === "domain" && first !== undefined) searchDomains = [first];
  }
  return { servers, searchDomains };
}
