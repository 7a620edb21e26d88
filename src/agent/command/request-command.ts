import { Command } from "commander";
import { MeshError } from "#lib/mesh-error.ts";
import { wholeNumber } from "./whole-number.ts";

/** Envoy's admin port, its status port, the agent's, and the agent's debug port. */
const ALLOWED_PORTS = [15000, 15004, 15020, 15021];
const TIMEOUT_MS = 60_000;

/** `request GET config_dump`: asks Envoy beside this agent. Prints the answer and nothing else, since tools read it. */
export function requestCommand(write: (text: string) => void = (text) => void process.stdout.write(text)): Command {
  return new Command("request")
    .description("Makes an HTTP request to the Envoy admin API")
    .argument("<method>", "GET, POST ...")
    .argument("<path>", "such as config_dump or stats")
    .argument("[body]", "what to send")
    .option(
      "--debug-port <int32>",
      "Set the port to make a local request to. The default points to the Envoy admin API.",
      allowedPort,
      15000,
    )
    .action(async (method: string, path: string, body: string | undefined, { debugPort }: { debugPort: number }) => {
      const { fetchText } = await import("../http-client.ts");
      const target = { host: "localhost", port: debugPort, path: `/${path.replace(/^\//, "")}` };
      const answer = await fetchText({
        ...target,
        method,
        timeoutMs: TIMEOUT_MS,
        ...(body === undefined ? {} : { body }),
      });
      if (answer.status > 399 && answer.status !== 404)
        throw new MeshError("HTTP_FAILED", `received unsuccessful status code ${answer.status}: ${answer.body}`);
      write(`${answer.body}\n`);
    });
}

function allowedPort(text: string): number {
  const port = wholeNumber("--debug-port")(text);
  if (ALLOWED_PORTS.includes(port)) return port;
  throw new MeshError("FLAG_INVALID", `debug port ${port} is not in allowed list [${ALLOWED_PORTS.join(" ")}]`);
}
