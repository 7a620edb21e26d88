/** Checks of annotations whose values end up in containers: what is wrong is told before a pod is made of it. */
import { isIP } from "node:net";
import { parseGoBool } from "#lib/go/go-bool.ts";
import { canonicalQuantity } from "./kubernetes/quantity.ts";
import { checkEffectiveProxyConfig } from "./mesh/proxy-config.ts";
import { INTERCEPTION_MODE, MERGE_METRICS, PROXY_CONFIG, STATUS, STATUS_PORT } from "./pod/names.ts";

/** What is wrong with a value; undefined when nothing is. */
type Check = (value: string) => string | undefined;

const READINESS = "readiness.status.sidecar.istio.io";
const TRAFFIC = "traffic.sidecar.istio.io";
const RESOURCES = "sidecar.istio.io";

const CHECKS: ReadonlyMap<string, Check> = new Map<string, Check>([
  [INTERCEPTION_MODE, checkInterceptionMode],
  [STATUS_PORT, checkPort],
  [`${READINESS}/initialDelaySeconds`, checkCount],
  [`${READINESS}/periodSeconds`, checkCount],
  [`${READINESS}/failureThreshold`, checkCount],
  [`${TRAFFIC}/includeOutboundIPRanges`, orStar("includeIPRanges", checkRanges)],
  [`${TRAFFIC}/excludeOutboundIPRanges`, named("excludeIPRanges", checkRanges)],
  [`${TRAFFIC}/includeInboundPorts`, orStar("includeInboundPorts", checkPorts)],
  [`${TRAFFIC}/excludeInboundPorts`, named("excludeInboundPorts", checkPorts)],
  [`${TRAFFIC}/excludeOutboundPorts`, named("excludeOutboundPorts", checkPorts)],
  [MERGE_METRICS, (value) => (parseGoBool(value) === undefined ? `must be true or false, not "${value}"` : undefined)],
  [PROXY_CONFIG, checkEffectiveProxyConfig],
  [`${RESOURCES}/proxyCPU`, checkQuantity],
  [`${RESOURCES}/proxyMemory`, checkQuantity],
  [`${RESOURCES}/proxyCPULimit`, checkQuantity],
  [`${RESOURCES}/proxyMemoryLimit`, checkQuantity],
]);

/** Annotations that templates read as words or lists of words. */
const OF_WORDS = /^(?:(?:[a-z]+\.)*sidecar|inject)\.istio\.io\/|^istio\.io\/reroute-virtual-interfaces$/;
/** These hold JSON or YAML. */
const OF_DATA: ReadonlySet<string> = new Set([STATUS, `${RESOURCES}/userVolume`, `${RESOURCES}/userVolumeMount`]);

/** What Kubernetes allows for all annotations of an object. */
const MOST_LETTERS = 256 * 1024;

/** Every problem of a pod's annotations. */
export function checkAnnotations(annotations: Readonly<Record<string, string>>): readonly string[] {
  const size = Object.entries(annotations).reduce((sum, [name, value]) => sum + name.length + value.length, 0);
  if (size > MOST_LETTERS) return [`annotations are too long: ${size} letters of at most ${MOST_LETTERS}`];
  return Object.entries(annotations).flatMap(([name, value]) => {
    const isOfWords = OF_WORDS.test(name) && !OF_DATA.has(name);
    const problem = (isOfWords ? checkWords(value) : undefined) ?? CHECKS.get(name)?.(value);
    return problem === undefined ? [] : [`invalid value '${value}' for annotation '${name}': ${problem}`];
  });
}

/** Templates of installations may write a value into YAML as it is: it must not end its line or its quotes. */
function checkWords(value: string): string | undefined {
  return /["\p{Cc}]/u.test(value) ? "value contains quotes or control characters" : undefined;
}

/** A quantity that cannot smuggle in lines of YAML. */
export function checkQuantity(value: string): string | undefined {
  if (/\p{Cc}/u.test(value)) return "value contains control characters";
  return canonicalQuantity(value) === undefined ? 'must be a quantity such as "100m" or "1Gi"' : undefined;
}

function checkInterceptionMode(mode: string): string | undefined {
  return ["REDIRECT", "TPROXY", "NONE"].includes(mode)
    ? undefined
    : `interceptionMode invalid, use REDIRECT,TPROXY,NONE: ${mode}`;
}

function checkPort(value: string): string | undefined {
  const port = value.trim();
  return /^\d+$/.test(port) && Number(port) <= 65_535 ? undefined : `must be a port from 0 to 65535, not "${value}"`;
}

function checkPorts(value: string): string | undefined {
  if (value.trim() === "") return undefined;
  return value
    .trim()
    .split(",")
    .map(checkPort)
    .find((problem) => problem !== undefined);
}

function checkCount(value: string): string | undefined {
  return /^\d+$/.test(value) && Number(value) <= 0xffff_ffff ? undefined : `must be a whole number, not "${value}"`;
}

function checkRanges(value: string): string | undefined {
  const wrong = value === "" ? undefined : value.split(",").find((range) => !isRange(range));
  return wrong === undefined ? undefined : `must be ranges such as 10.0.0.0/8, not "${wrong}"`;
}

function orStar(field: string, check: Check): Check {
  return (value) => (value === "*" ? undefined : named(field, check)(value));
}

function named(field: string, check: Check): Check {
  return (value) => {
    const problem = check(value);
    return problem === undefined ? undefined : `${field} invalid: ${problem}`;
  };
}

function isRange(text: string): boolean {
  const [address = "", bits = "", ...rest] = text.split("/");
  const family = isIP(address);
  return family !== 0 && rest.length === 0 && /^(0|[1-9]\d*)$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128);
}
