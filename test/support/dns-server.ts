/** A DNS proxy on a free port of loopback. */
import { type DnsServerOptions, startDnsServer } from "#agent/dns/server.ts";
import { openUdp } from "#agent/dns/udp-socket.ts";
import { agentMetrics } from "#agent/metrics.ts";
import { SILENT } from "#lib/log/log.ts";

export interface LocalDns {
  readonly port: number;
  close(): Promise<void>;
}

type Options = Partial<DnsServerOptions> & Pick<DnsServerOptions, "resolver" | "nameServers">;

/** A port that is picked may be free for UDP only, so others are tried. */
export async function startLocalDns(options: Options, tries = 10): Promise<LocalDns> {
  const udp = await openUdp("127.0.0.1", 0);
  try {
    const server = await startDnsServer([udp], {
      forwardParallel: false,
      log: SILENT,
      metrics: agentMetrics(),
      ...options,
    });
    const close = async () => {
      udp.socket.close();
      await server.close();
    };
    return { port: udp.port, close };
  } catch (thrown) {
    udp.socket.close();
    if (tries === 1) throw thrown;
    return startLocalDns(options, tries - 1);
  }
}
