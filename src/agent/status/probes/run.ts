/** Runs one probe against the application, as the kubelet would. */
import { connect } from "node:net";
import { errorText } from "#lib/mesh-error.ts";
import type { Answer, IncomingRequest } from "../answer.ts";
import { runHttpProbe } from "./http.ts";
import type { AppProbe, GrpcProbe, TcpProbe } from "./parse.ts";

export interface ProbeTarget {
  /** Address of the application. */
  readonly host: string;
  /** Source address that the traffic capture lets pass to the application. */
  readonly localAddress: string;
  readonly statusPort: number;
}

export async function runProbe(probe: AppProbe, request: IncomingRequest, target: ProbeTarget): Promise<Answer> {
  try {
    if (probe.kind === "http") return await runHttpProbe(probe, request, target);
    const passed = probe.kind === "tcp" ? await accepts(probe, target) : await serves(probe, target);
    return { status: passed ? 200 : 500 };
  } catch (thrown) {
    return { status: 500, problem: `Request to probe app failed: ${errorText(thrown)}` };
  }
}

/** True when the port accepts a connection. */
function accepts({ port, timeoutMs }: TcpProbe, { host, localAddress }: ProbeTarget): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, localAddress });
    const settle = (accepted: boolean) => {
      socket.destroy();
      resolve(accepted);
    };
    socket.setTimeout(timeoutMs, () => settle(false));
    socket.on("connect", () => settle(true));
    socket.on("error", () => settle(false));
  });
}

/** True when the gRPC health service says that the service is serving. */
async function serves(probe: GrpcProbe, target: ProbeTarget): Promise<boolean> {
  const { checkGrpcHealth } = await import("./grpc.ts");
  return checkGrpcHealth(probe, target.host);
}
