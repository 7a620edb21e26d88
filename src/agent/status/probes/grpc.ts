import { Client, credentials } from "@grpc/grpc-js";
import { readMessage } from "#lib/wire/read.ts";
import { MessageWriter } from "#lib/wire/write.ts";
import { RAW } from "../../unix-server.ts";
import type { GrpcProbe } from "./parse.ts";

const CHECK = "/grpc.health.v1.Health/Check";
const SERVING = 1;

/** Asks `grpc.health.v1.Health`; rejects when there is none. */
export async function checkGrpcHealth({ port, service, timeoutMs }: GrpcProbe, host: string): Promise<boolean> {
  const address = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const client = new Client(address, credentials.createInsecure(), { "grpc.use_local_subchannel_pool": 1 });
  try {
    return await new Promise((resolve, reject) => {
      const request = Buffer.from(new MessageWriter().string(1, service).finish());
      const options = { deadline: Date.now() + timeoutMs };
      client.makeUnaryRequest(
        CHECK,
        RAW.requestSerialize,
        RAW.responseDeserialize,
        request,
        options,
        (error, answer) => {
          if (error !== null || answer === undefined) reject(error);
          else resolve(healthOf(answer) === SERVING);
        },
      );
    });
  } finally {
    client.close();
  }
}

function healthOf(answer: Buffer): number {
  let health = 0;
  readMessage(answer, {
    varint: {
      1: (value) => {
        health = value;
      },
    },
  });
  return health;
}
