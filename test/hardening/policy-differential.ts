/**
 * Compares our evaluator with a real Envoy:
 * `node test/hardening/policy-differential.ts [--requests 1000000] [--seed N]`. Ends with 1 at the first difference.
 */
import { parseArgs } from "node:util";
import { compareVerdicts } from "./policies/compare-verdicts.ts";

const { values } = parseArgs({
  options: { requests: { type: "string", default: "1000000" }, seed: { type: "string", default: "" } },
});
const seed = values.seed === "" ? Math.floor(Math.random() * 1e6) : Number(values.seed);
const verdicts = Number(values.requests);
if (!Number.isSafeInteger(seed) || !(Number.isSafeInteger(verdicts) && verdicts > 0)) {
  console.error("--requests and --seed must be whole numbers");
  process.exit(2);
}
console.log(`seed ${seed}`);
const start = performance.now();
const { outcomes } = await compareVerdicts({ verdicts, seed }, (done) => {
  const seconds = (performance.now() - start) / 1000;
  console.log(`${done} verdicts, no difference, ${Math.round(done / seconds)} per second`);
});
console.log(JSON.stringify(outcomes));
