import { checkDnsLabel, checkFqdn } from "../../checks/names.ts";
import { type Problem, warning } from "../../schema/problem.ts";

/** References to gateways: `name`, `namespace/name`, or the old form of a host name. */
export function* checkGatewayNames(names: readonly string[] | undefined, at: string): Iterable<Problem> {
  for (const [i, reference] of (names ?? []).entries()) {
    const slash = reference.indexOf("/");
    if (slash >= 0) {
      yield* checkDnsLabel(reference.slice(0, slash), `${at}[${i}]`);
      yield* checkDnsLabel(reference.slice(slash + 1), `${at}[${i}]`);
      continue;
    }
    const [name, namespace] = reference.split(".");
    if (namespace !== undefined) {
      yield warning(`${at}[${i}]`, `is an old form: write "${namespace}/${name}" instead of "${reference}"`);
    }
    yield* checkFqdn(reference, `${at}[${i}]`);
  }
}
