import { connect, isIP, isIPv6 } from "node:net";
import type { Connect } from "../../place.ts";

/** Source addresses that the rules of traffic capture let pass to the application. */
export const PROBE_SOURCE_V4 = "127.0.0.6";
const PROBE_SOURCE_V6 = "::6";

/** The source for a host: a socket has one family at both ends. Names are looked up in that of `localhost`. */
export function probeSource(host: string, localhost: string): string {
  return isIPv6(isIP(host) === 0 ? localhost : host) ? PROBE_SOURCE_V6 : PROBE_SOURCE_V4;
}

/** Connections to the application that are not taken for traffic. */
export function connectToApplication(localhost: string): Connect {
  return (to, signal) => connectFrom(probeSource(to.host, localhost))(to, signal);
}

/** Connections from one of the machine's own addresses. */
export function connectFrom(localAddress: string): Connect {
  return ({ host, port }, signal) =>
    new Promise((resolve, reject) => {
      const socket = connect({ host, port, localAddress, family: isIP(localAddress) });
      const cut = () => socket.destroy(signal.reason);
      signal.addEventListener("abort", cut, { once: true });
      socket.once("close", () => signal.removeEventListener("abort", cut));
      socket.once("error", reject);
      socket.once("connect", () => resolve(socket));
      if (signal.aborted) cut();
    });
}
