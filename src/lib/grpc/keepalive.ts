import type { Http2Session } from "node:http2";
import { GrpcError, STATUS } from "./status.ts";

export interface Keepalive {
  /** The other side is pinged so often ... */
  readonly intervalMs: number;
  /** ... and the connection cut when no answer comes in this time. */
  readonly timeoutMs: number;
}

/** Finds out that the other side of a connection is gone though nobody said so. */
export function keepAlive(session: Http2Session, { intervalMs, timeoutMs }: Keepalive): void {
  let silence: NodeJS.Timeout | undefined;
  const timer = setInterval(() => {
    if (silence !== undefined || session.destroyed) return;
    silence = setTimeout(
      () => session.destroy(new GrpcError(STATUS.UNAVAILABLE, "Keepalive timeout")),
      timeoutMs,
    ).unref();
    session.ping(() => {
      clearTimeout(silence);
      silence = undefined;
    });
  }, intervalMs).unref();
  session.on("close", () => {
    clearInterval(timer);
    clearTimeout(silence);
  });
}
