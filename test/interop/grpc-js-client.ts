/** A program that finds its servers by grpc-js's own xDS client. Arguments: target, calls, and a header as name=value. */
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { register } from "@grpc/grpc-js-xds";

register();
const [target = "", calls = "0", header = ""] = process.argv.slice(2);
const [name = "", value = ""] = header.split("=");
const metadata = new Metadata();
if (name !== "") metadata.set(name, value);
const asIs = (bytes: Buffer) => bytes;
const client = new Client(target, credentials.createInsecure());
const counts: Record<string, number> = {};
for (let call = 0; call < Number(calls); call++) {
  const answer = await new Promise<string>((resolve) => {
    const options = { deadline: Date.now() + 15_000, waitForReady: true };
    client.makeUnaryRequest("/test.Greeter/Who", asIs, asIs, Buffer.alloc(0), metadata, options, (error, response) =>
      resolve(error === null ? String(response) : `error ${error.details}`),
    );
  });
  counts[answer] = (counts[answer] ?? 0) + 1;
}
process.stdout.write(JSON.stringify(counts));
process.exit(0);
