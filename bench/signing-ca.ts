/** A certificate authority by itself, as a process: our service over TLS. Prints its address, then its root in PEM. */
import { startSigningService } from "../scripts/signing-service.ts";

const { address, rootPem } = await startSigningService({ serviceAccount: "bench", name: "localhost" });
console.log(`${address}\n${rootPem}`);
