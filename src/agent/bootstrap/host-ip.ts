/**
 * Text of a bootstrap override with the address of the machine in place of `$(HOST_IP)`. An IPv6 address gets brackets
 * unless it has some; around another they are those of a list.
 */
export function withHostIp(text: string, hostIp: string): string {
  if (!hostIp.includes(":")) return text.replaceAll("$(HOST_IP)", hostIp);
  const host = `[${hostIp}]`;
  return text.replaceAll("[$(HOST_IP)]", host).replaceAll("$(HOST_IP)", host);
}
