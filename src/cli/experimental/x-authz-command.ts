/** `mizzen x authz`: which policies a workload is under, and what they say to a request. */
import { readFile } from "node:fs/promises";
import { fromBinary } from "@bufbuild/protobuf";
import { Command, InvalidArgumentError, Option } from "commander";
import { objectKey } from "#config/schema/config-object.ts";
import { checkTable, type RbacFilter } from "#explain/authorization/check-table.ts";
import { describeEvaluation } from "#explain/authorization/describe.ts";
import { type Evaluation, evaluate } from "#explain/authorization/evaluate.ts";
import { normalizedPath } from "#explain/authorization/path.ts";
import type { Claims, Request } from "#explain/authorization/request.ts";
import { claimedOutcome, type TokenOutcome, tokenOutcome } from "#explain/authorization/token.ts";
import { acceptedBy } from "#explain/mtls.ts";
import { type KnownPort, type KnownWorkload, portsOf } from "#explain/workloads.ts";
import { RBAC_Action as Action } from "#gen/envoy/config/rbac/v3/rbac_pb.ts";
import { RBACSchema as HttpRbacSchema } from "#gen/envoy/extensions/filters/http/rbac/v3/rbac_pb.ts";
import { RBACSchema as TcpRbacSchema } from "#gen/envoy/extensions/filters/network/rbac/v3/rbac_pb.ts";
import { errorText, MeshError } from "#lib/mesh-error.ts";
import { formatOutput, OUTPUT_FORMATS, type OutputFormat } from "#lib/print/output.ts";
import { formatTable } from "#lib/print/table.ts";
import {
  customHttpFilters,
  customTcpFilters,
  httpAuthorization,
  tcpAuthorization,
  unreadableHttpFilters,
  unreadableTcpFilters,
} from "#translate/authorization/filters.ts";
import { httpExtAuthz } from "#translate/authorization/provider.ts";
import { authorizationInput, authorizationPoliciesOf } from "#translate/policies/authorization-policies.ts";
import { requestAuthenticationsOf } from "#translate/policies/request-authentications.ts";
import { finish } from "../terminal/exit-codes.ts";
import { withChoice } from "../terminal/options.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { type FolderOptions, type MeshOfFiles, meshOfOptions, peerPolicies, workloadNamed } from "./x-mesh.ts";

interface ExplainOptions extends FolderOptions {
  readonly from?: string;
  readonly to: string;
  readonly method: string;
  readonly path: string;
  readonly host?: string;
  readonly header: readonly (readonly [string, string])[];
  readonly jwt?: string;
  readonly claims?: Claims;
  readonly sourceIp: string;
  readonly remoteIp?: string;
  readonly tcp?: boolean;
  readonly output?: OutputFormat;
}

const HELP = `
Examples:
  mizzen x authz check httpbin.foo -f samples/httpbin
  mizzen x authz explain --from foo/sleep --to httpbin.foo:8000 --method GET --path /admin -f samples/httpbin`;

export function authzCommand(terminal: Terminal): Command {
  const group = new Command("authz")
    .summary("explain authorization policies")
    .description("Explains authorization policies.")
    .addHelpText("after", HELP);
  group.addCommand(checkCommand(terminal));
  group.addCommand(explainCommand(terminal));
  return group;
}

function withFolder(command: Command): Command {
  return withChoice(command).option(
    "-f, --file <folder>",
    "files with the configuration; without it a mesh that is up",
  );
}

function checkCommand(terminal: Terminal): Command {
  return withFolder(new Command("check"))
    .summary("list the policies that a workload enforces")
    .description("Prints istioctl's table of the AuthorizationPolicies that the proxy of a workload enforces.")
    .argument("<workload>", "NAME or NAME.NAMESPACE")
    .addOption(new Option("-o, --output <format>", "form of the output").choices(OUTPUT_FORMATS))
    .addHelpText(
      "after",
      "\nExamples:\n  mizzen x authz check httpbin.foo -f samples/httpbin\n  mizzen x authz check httpbin.foo -o json",
    )
    .action((name: string, options: FolderOptions & { readonly output?: OutputFormat }) =>
      finish(terminal, async () => {
        const mesh = await loaded(terminal, options);
        const [head, ...rows] = checkTable(filtersOf(mesh, workloadNamed(mesh, name)));
        const data = rows.map(([action, policy, rules]) => ({ action, policy, rules: Number(rules) }));
        terminal.print(
          options.output === undefined ? formatTable([head, ...rows]) : formatOutput(data, options.output),
        );
        return 0;
      }),
    );
}

function explainCommand(terminal: Terminal): Command {
  return withFolder(new Command("explain"))
    .summary("say whether a request is allowed, and why")
    .description(
      "Evaluates the policies of a workload for a request, without sending it: the verdict, the policy, rule and field that decide, with file and line, and what would change it.",
    )
    .option("--from <account>", "caller: NAMESPACE/ACCOUNT, ACCOUNT, or a SPIFFE id; without it plain text")
    .requiredOption("--to <workload:port>", "what is called: NAME[.NAMESPACE][:PORT]")
    .option("--method <method>", "HTTP method", "GET")
    .option("--path <path>", "path as the client sends it", "/")
    .option("--host <host>", "host as the client sends it; the name of the workload by default")
    .option("--header <name=value>", "header; may be repeated", header, [])
    .option("--jwt <file>", "file with the caller's token")
    .option("--claims <json>", "claims of a good token of the caller", claimsOf)
    .option("--source-ip <address>", "where the connection comes from", "127.0.0.1")
    .option("--remote-ip <address>", "the original client behind proxies that are trusted; the source by default")
    .option("--tcp", "a connection that is not HTTP")
    .addOption(new Option("-o, --output <format>", "form of the output").choices(OUTPUT_FORMATS))
    .addHelpText(
      "after",
      "\nExamples:\n  mizzen x authz explain --from foo/sleep --to httpbin.foo:8000 --method GET --path /admin -f samples/httpbin",
    )
    .action((options: ExplainOptions) => finish(terminal, () => explain(terminal, options)));
}

function header(text: string, before: readonly (readonly [string, string])[]): readonly (readonly [string, string])[] {
  const at = text.search(/[=:]/);
  if (at < 1) throw new InvalidArgumentError("it must be NAME=VALUE");
  return [...before, [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()]];
}

function claimsOf(text: string): Claims {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw new InvalidArgumentError(`it must be JSON: ${errorText(thrown)}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new InvalidArgumentError("it must be an object with claims");
  return value as Claims;
}

async function loaded(terminal: Terminal, options: FolderOptions): Promise<MeshOfFiles> {
  const mesh = await meshOfOptions(options);
  for (const problem of mesh.problems) terminal.say(`note: ${problem}`);
  return mesh;
}

async function explain(terminal: Terminal, options: ExplainOptions): Promise<number> {
  const mesh = await loaded(terminal, options);
  const called = calledBy(mesh, options);
  const token = await tokenOf(mesh, called.workload, options);
  const refused = refusedBefore(mesh, called, { options, token });
  if (refused !== undefined) {
    const [why, ...more] = refused;
    terminal.print(
      options.output === undefined
        ? [`verdict: DENIED`, `because: ${why}`, ...more, ""].join("\n")
        : formatOutput({ verdict: "denied", why }, options.output),
    );
    return 0;
  }
  const { evaluation, notes } = evaluated(mesh, called, { options, token });
  if (options.output !== undefined) {
    terminal.print(formatOutput(plain(evaluation, mesh), options.output));
    return 0;
  }
  const lines = [...notes.map((note) => `note: ${note}`), ...describeEvaluation(evaluation, mesh.placeOf)];
  terminal.print(`${lines.join("\n")}\n`);
  return 0;
}

interface Called {
  readonly workload: KnownWorkload;
  /** Of the workload. */
  readonly port: number;
  readonly known: KnownPort | undefined;
}

/** A port of the workload itself, or of a service in front of it. */
function calledBy(mesh: MeshOfFiles, { to }: ExplainOptions): Called {
  const [, name = to, portText] = /^(.*?)(?::(\d+))?$/.exec(to) ?? [];
  const workload = workloadNamed(mesh, name);
  const ports = portsOf(workload, mesh.services);
  const wanted = portText === undefined ? ports[0]?.targetPort : Number(portText);
  const known = ports.find(({ targetPort }) => targetPort === wanted) ?? ports.find(({ port }) => port === wanted);
  return { workload, port: known?.targetPort ?? wanted ?? 80, known };
}

async function tokenOf(
  mesh: MeshOfFiles,
  workload: KnownWorkload,
  { jwt, claims }: ExplainOptions,
): Promise<TokenOutcome> {
  const rules = requestAuthenticationsOf(mesh.snapshot, workload).flatMap(({ spec }) => spec.jwtRules ?? []);
  if (claims !== undefined) return claimedOutcome(claims, rules);
  if (jwt === undefined) return { claims: undefined, note: undefined };
  try {
    return tokenOutcome(await readFile(jwt, "utf8"), rules, Date.now());
  } catch (cause) {
    throw new MeshError("CONFIG_UNREADABLE", `Cannot read "${jwt}": ${errorText(cause)}`);
  }
}

interface Asked {
  readonly options: ExplainOptions;
  readonly token: TokenOutcome;
}

/** What refuses a request before a policy looks at it. */
function refusedBefore(mesh: MeshOfFiles, called: Called, { options, token }: Asked): readonly string[] | undefined {
  const { snapshot } = mesh;
  const accepts = acceptedBy(called.workload, called.port, peerPolicies(snapshot));
  if (accepts.value === "STRICT" && options.from === undefined)
    return [`plain text is refused: mutual TLS is STRICT by ${accepts.by}`, "to change it: name the caller by --from"];
  if ("refused" in token) return [`status ${token.status}, the token is refused: ${token.refused}`];
  const how = snapshot.mesh.pathNormalization?.normalization ?? "DEFAULT";
  return normalizedPath(options.path, how) === undefined
    ? ["status 400: the proxy does not accept the path"]
    : undefined;
}

function evaluated(
  mesh: MeshOfFiles,
  called: Called,
  { options, token }: Asked,
): { readonly evaluation: Evaluation; readonly notes: readonly string[] } {
  const { snapshot } = mesh;
  const policies = authorizationPoliciesOf(snapshot, called.workload);
  const { trustDomains, provider } = authorizationInput(snapshot, policies);
  const accepts = acceptedBy(called.workload, called.port, peerPolicies(snapshot));
  const peer = accepts.value === "DISABLE" ? undefined : peerOf(options.from, called.workload, trustDomains[0] ?? "");
  const request = requestOf({ mesh, called, options, peer, claims: "claims" in token ? token.claims : undefined });
  const canAsk = provider !== undefined && httpExtAuthz(provider) !== undefined;
  const notes = [
    ...(called.workload.proxy === "none" ? ["the workload has no proxy: nothing is enforced"] : []),
    ...(accepts.value === "DISABLE" && options.from !== undefined
      ? [`mutual TLS is off (${accepts.by}): nobody sees who calls`]
      : []),
    ...("note" in token && token.note !== undefined ? [token.note] : []),
  ];
  return { evaluation: evaluate({ policies, trustDomains, canAsk, request }), notes };
}

function peerOf(from: string | undefined, { namespace }: KnownWorkload, trustDomain: string): string | undefined {
  if (from === undefined || from.startsWith("spiffe://")) return from;
  if (from.includes("/ns/")) return `spiffe://${from}`;
  const [first = "", second] = from.split("/");
  const [home, account] = second === undefined ? [namespace, first] : [first, second];
  return `spiffe://${trustDomain}/ns/${home}/sa/${account}`;
}

interface RequestParts {
  readonly mesh: MeshOfFiles;
  readonly called: Called;
  readonly options: ExplainOptions;
  readonly peer: string | undefined;
  readonly claims: Claims | undefined;
}

function requestOf({ mesh, called, options, peer, claims }: RequestParts): Request {
  const { sourceIp, remoteIp = sourceIp } = options;
  const connection = { peer, sourceIp, remoteIp, destinationIp: "127.0.0.1", port: called.port, sni: "" };
  const isTcp = options.tcp ?? called.known?.isHttp === false;
  if (isTcp) return { ...connection, protocol: "tcp" };
  const how = mesh.snapshot.mesh.pathNormalization?.normalization ?? "DEFAULT";
  const headers = Object.fromEntries(
    [...Map.groupBy(options.header, ([name]) => name)].map(([name, all]) => [name, all.map(([, value]) => value)]),
  );
  return {
    ...connection,
    protocol: "http",
    method: options.method,
    path: normalizedPath(options.path, how) ?? options.path,
    host: options.host ?? headers.host?.[0] ?? called.known?.service.metadata.name ?? called.workload.name,
    headers,
    claims,
  };
}

/** The evaluation as data, without the objects themselves. */
function plain({ verdict, why, decidedBy, rules }: Evaluation, { placeOf }: MeshOfFiles): object {
  const ruleOf = ({ policy, rule, action, isDryRun, matches, fields }: Evaluation["rules"][number]) => ({
    policy: objectKey(policy),
    rule,
    action,
    isDryRun,
    matches,
    place: placeOf(policy, rule === undefined ? "spec" : `spec.rules[${rule}]`),
    fields: fields.map((field) => ({ ...field, place: placeOf(policy, field.field) })),
  });
  return { verdict, why, ...(decidedBy && { decidedBy: ruleOf(decidedBy) }), rules: rules.map(ruleOf) };
}

const ACTIONS: Readonly<Record<Action, RbacFilter["action"]>> = {
  [Action.ALLOW]: "ALLOW",
  [Action.DENY]: "DENY",
  [Action.LOG]: "LOG",
};

function filtersOf({ snapshot }: MeshOfFiles, workload: KnownWorkload): readonly RbacFilter[] {
  const input = authorizationInput(snapshot, authorizationPoliciesOf(snapshot, workload));
  const filters = [
    ...[...unreadableHttpFilters(input), ...customHttpFilters(input), ...httpAuthorization(input)],
    ...[...unreadableTcpFilters(input), ...customTcpFilters(input), ...tcpAuthorization(input)],
  ];
  return filters.flatMap(({ name, configType }) => {
    if (!name.endsWith(".rbac") || configType.case !== "typedConfig") return [];
    const isHttp = name === "envoy.filters.http.rbac";
    const { value } = configType.value;
    const { rules, shadowRules } = isHttp ? fromBinary(HttpRbacSchema, value) : fromBinary(TcpRbacSchema, value);
    return [
      {
        action: ACTIONS[rules?.action ?? Action.ALLOW] ?? "ALLOW",
        rules: Object.keys(rules?.policies ?? {}),
        shadowRules: Object.keys(shadowRules?.policies ?? {}),
      },
    ];
  });
}
