/** The host of a URL without brackets and final dot, in lower case. */
export function bareHost({ hostname }: URL): string {
  return hostname
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
}
