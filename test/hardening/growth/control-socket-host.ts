/** The control socket of a mesh on one machine, without a mesh behind it: `control-socket-host.ts PATH`. */

import { createLogger } from "#lib/log/log.ts";
import { serveControl } from "#standalone/control/serve-control.ts";

const [path = ""] = process.argv.slice(2);
await serveControl({ path, handle: async () => ({}), log: createLogger({ write: () => undefined }) });
console.log("listening");
