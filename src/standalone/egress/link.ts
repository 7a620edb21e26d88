/** The one cable between a fabric and the machine's own network: its names and addresses. */

export interface EgressLink {
  /** The machine's end, which nothing else is called like. */
  readonly name: string;
  /** The machine's table of packet rules that belong to it. */
  readonly table: string;
  readonly hostAddress: string;
  readonly fabricAddress: string;
  readonly prefixLength: number;
}

/** The fabric's end. */
export const FABRIC_END = "out0";
/** What the machine's ends of all meshes start with. */
export const LINK_PREFIX = "mze-";

const PREFIX_LENGTH = 30;
/** 198.18.0.0/15 is for tests of network equipment: nobody routes it, and few machines have an address of it. */
const FIRST = (198 << 24) | (18 << 16);
const PAIRS = 2 ** (PREFIX_LENGTH - 15);

export function linkName(id: string): string {
  return `${LINK_PREFIX}${id}`;
}

export function tableName(id: string): string {
  return `mizzen_${id}`;
}

/** A link for a mesh, with addresses that are none of those in use; undefined when all are taken. */
export function chooseLink(id: string, used: readonly string[]): EgressLink | undefined {
  const taken = new Set(used.map(addressNumber).map((number) => number & ~3));
  const start = Number.parseInt(id, 16) % PAIRS;
  for (let i = 0; i < PAIRS; i++) {
    const base = (FIRST + ((start + i) % PAIRS) * 4) | 0;
    if (taken.has(base)) continue;
    const [hostAddress, fabricAddress] = [formatAddress(base + 1), formatAddress(base + 2)];
    return { name: linkName(id), table: tableName(id), hostAddress, fabricAddress, prefixLength: PREFIX_LENGTH };
  }
  return undefined;
}

/** The addresses in what `ip -oneline -4 address` prints. */
export function usedAddresses(printed: string): readonly string[] {
  return [...printed.matchAll(/ (?:inet|peer) (\d+\.\d+\.\d+\.\d+)/g)].map((match) => match[1] ?? "");
}

/** `ip` lines for the machine; the fabric's namespace is given by its name. */
export function hostLines({ name, hostAddress, prefixLength }: EgressLink, fabric: string): readonly string[] {
  return [
    `link add ${name} type veth peer name ${FABRIC_END} netns ${fabric}`,
    `addr add ${hostAddress}/${prefixLength} dev ${name}`,
    `link set ${name} up`,
  ];
}

/** `ip` lines for the fabric. Addresses that only sidecars know must not leave it. */
export function fabricLines({ hostAddress, fabricAddress, prefixLength }: EgressLink): readonly string[] {
  return [
    `addr add ${fabricAddress}/${prefixLength} dev ${FABRIC_END}`,
    `link set ${FABRIC_END} up`,
    `route add default via ${hostAddress}`,
  ];
}

/**
 * The machine's rules, for `nft -f -`: what comes from the fabric leaves under the machine's address. Interfaces that
 * forward packets only because of us forward them to and from meshes, and for nobody else.
 */
export function hostRules({ table, fabricAddress }: EgressLink, switchedOn: readonly string[]): string {
  const interfaces = switchedOn.map((name) => JSON.stringify(name)).join(", ");
  const between =
    switchedOn.length === 0
      ? ""
      : `
  chain between {
    type filter hook forward priority filter;
    iifname { ${interfaces} } oifname != "${LINK_PREFIX}*" drop
  }`;
  return `table ip ${table} {
  chain out {
    type nat hook postrouting priority srcnat;
    ip saddr ${fabricAddress} masquerade
  }${between}
}
`;
}

/** Whatever way a packet goes out, it carries the fabric's one address there. For `iptables-restore --noflush`. */
export const FABRIC_RULES = `*nat
-A POSTROUTING -o ${FABRIC_END} -j MASQUERADE
COMMIT
`;

function addressNumber(address: string): number {
  return address.split(".").reduce((number, part) => (number << 8) | Number(part), 0);
}

function formatAddress(number: number): string {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join(".");
}
