/** What files and `--set` ask for, in the words of an IstioOperator or as values of the chart, as one. */
import { isRecord } from "#lib/json/is-record.ts";
import { MeshError } from "#lib/mesh-error.ts";
import { componentsOf } from "./components.ts";
import { joined, parseSetting, type Values, withSetting } from "./values.ts";

/** What somebody asks for, over what there is. Null takes a value away. */
export interface Asked {
  /** Empty: nobody named one. */
  readonly profile: string;
  /** Values of the chart. */
  readonly values: Values;
  /** Components, in the words of an IstioOperator. */
  readonly components: Values;
}

export const NOTHING_ASKED: Asked = { profile: "", values: {}, components: {} };

/** Parts of a specification that are about Istio's own installer, or said elsewhere. */
const OF_INSTALLER = ["namespace", "installPackagePath"];

/** What a file asks for: values, or an IstioOperator. `where` names it in messages. Throws a MeshError. */
export function askedBy(given: Values, where: string): Asked {
  const isOperator = given.kind === "IstioOperator";
  if (given.kind !== undefined && !isOperator) {
    throw new MeshError("INSTALL_INVALID", `${where}: a ${String(given.kind)} is neither values nor an IstioOperator`);
  }
  const spec = isOperator ? recordAt(given, "spec", where) : given;
  const { values: _, components: __, unvalidatedValues: ___, profile, hub, tag, ...rest } = spec;
  const components = recordAt(spec, "components", where);
  // Mistakes are told with the file that they are in; what comes of it is known when all sources are.
  componentsOf(components, where);
  const values = [
    isOperator ? ownerOf(given) : {},
    defined({ global: defined({ hub, tag }) }),
    Object.fromEntries(Object.entries(rest).filter(([name]) => !OF_INSTALLER.includes(name))),
    recordAt(spec, "values", where),
    recordAt(spec, "unvalidatedValues", where),
  ].reduce(joined);
  return { profile: String(profile ?? ""), values, components };
}

/** Both, the second over the first; a list is taken as a whole. */
export function askedTogether(before: Asked, over: Asked): Asked {
  return {
    profile: over.profile || before.profile,
    values: joined(before.values, over.values),
    components: joined(before.components, over.components),
  };
}

/** With one `--set` over it. */
export function withSet(asked: Asked, text: string): Asked {
  const setting = parseSetting(text);
  const [first, ...rest] = setting.path;
  if (first === "profile") return { ...asked, profile: String(setting.value) };
  if (first === "components") return { ...asked, components: placedAt(asked.components, rest) };
  if (first === "values" || first === "unvalidatedValues") return { ...asked, values: placedAt(asked.values, rest) };
  if (OF_INSTALLER.includes(first)) return asked;
  const path = first === "hub" || first === "tag" ? (["global", first] as const) : setting.path;
  return { ...asked, values: placedAt(asked.values, path) };

  function placedAt(settings: Values, [name, ...inner]: readonly unknown[]): Values {
    if (typeof name !== "string") throw new MeshError("INSTALL_INVALID", `--set ${text}: name what is under ${first}`);
    return withSetting(settings, { ...setting, path: [name, ...inner] as typeof setting.path });
  }
}

/** The name of an IstioOperator tells its objects from those of others of the same revision. */
function ownerOf({ metadata }: Values): Values {
  const name = isRecord(metadata) ? metadata.name : undefined;
  return typeof name === "string" && name !== "" ? { ownerName: name } : {};
}

function defined(values: Values): Values {
  const isSaid = (value: unknown) => value !== undefined && !(isRecord(value) && Object.keys(value).length === 0);
  return Object.fromEntries(Object.entries(values).filter(([, value]) => isSaid(value)));
}

function recordAt(values: Values, name: string, where: string): Values {
  const value = values[name] ?? {};
  if (!isRecord(value)) throw new MeshError("INSTALL_INVALID", `${where}: ${name}: an object is wanted`);
  return value;
}
