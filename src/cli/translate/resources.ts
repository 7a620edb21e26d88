/**
 * All resources that a proxy would get, each with the recipe it was made by: what it is sent unasked, then what that names.
 *
 *     listeners --> routes, extensions, secrets
 *     clusters  --> endpoints, secrets
 */
import type { JsonObject, Registry } from "@bufbuild/protobuf";
import { finished, type Steps } from "#lib/async/steps.ts";
import { typedJson } from "#lib/json/any-json.ts";
import { errorText } from "#lib/mesh-error.ts";
import {
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  NAME_TABLE_TYPE,
  ROUTE_TYPE,
  SECRET_TYPE,
} from "#protocol/messages/type-urls.ts";
import { recipeBytes } from "#translate/patches/recipe-tree.ts";
import type { Recipe } from "#translate/recipes/recipe.ts";
import { referencesIn } from "./references.ts";

type RecipesByType = ReadonlyMap<string, readonly Recipe[]>;

/** What the configuration of a proxy is made of, as the xDS server has it. */
export interface PlannedParts {
  readonly types: ReadonlyMap<string, readonly { plan(): Steps<RecipesByType> }[]>;
  readonly asked: ReadonlyMap<string, { plan(name: string): Recipe | undefined }>;
  readonly omittedListeners: ReadonlySet<string>;
}

/** A resource as Envoy reads it. */
export interface TranslatedResource {
  readonly typeUrl: string;
  /** Empty for the table of names. */
  readonly name: string;
  readonly json: JsonObject;
  readonly recipe: Recipe;
}

export interface Translation {
  /** By type, clusters first, and by name. */
  readonly resources: readonly TranslatedResource[];
  /** What could not be built, one line each. */
  readonly broken: readonly string[];
}

export interface TranslationInput {
  readonly parts: PlannedParts;
  readonly registry: Registry;
  /** What a program that speaks xDS itself asks for first; Envoy is sent all there is. */
  readonly listeners: readonly string[];
}

/** The order in which resources are shown, which is also that in which they are sent. */
const TYPE_ORDER: readonly string[] = [
  CLUSTER_TYPE,
  ENDPOINT_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  SECRET_TYPE,
  EXTENSION_TYPE,
  NAME_TABLE_TYPE,
];

/** Translates everything for one proxy. A resource that cannot be built is left out and told of. */
export function translateAll(input: TranslationInput): Translation {
  const builder = new Builder(input);
  const { omittedListeners } = input.parts;
  const listeners = builder
    .all(LISTENER_TYPE, new Set(input.listeners))
    .filter(({ name }) => !omittedListeners.has(name));
  const ofListeners = referencesIn(listeners.map(({ json }) => json));
  const routes = builder.named(ROUTE_TYPE, ofListeners.routes);
  const extensions = builder.named(EXTENSION_TYPE, ofListeners.extensions);
  const ofRoutes = referencesIn([...listeners, ...routes].map(({ json }) => json));
  const clusters = builder.all(CLUSTER_TYPE, ofRoutes.clusters);
  const ofClusters = referencesIn([...listeners, ...extensions, ...clusters].map(({ json }) => json));
  const resources = [
    ...clusters,
    ...builder.named(ENDPOINT_TYPE, ofClusters.endpoints),
    ...listeners,
    ...routes,
    ...builder.named(SECRET_TYPE, ofClusters.secrets),
    ...extensions,
    ...builder.all(NAME_TABLE_TYPE, new Set()),
  ];
  return { resources: resources.sort(byTypeAndName), broken: builder.broken };
}

class Builder {
  readonly broken: string[] = [];
  readonly #input: TranslationInput;
  /** A part holds several types and is planned once. */
  readonly #plans = new Map<object, RecipesByType>();

  constructor(input: TranslationInput) {
    this.#input = input;
  }

  /** All of a type, or those of the names where each is planned for itself. */
  all(typeUrl: string, names: ReadonlySet<string>): readonly TranslatedResource[] {
    return this.#built(
      typeUrl,
      this.#input.parts.asked.has(typeUrl) ? this.#asked(typeUrl, names) : this.#listed(typeUrl),
    );
  }

  named(typeUrl: string, names: ReadonlySet<string>): readonly TranslatedResource[] {
    const recipes = this.#input.parts.asked.has(typeUrl)
      ? this.#asked(typeUrl, names)
      : this.#listed(typeUrl).filter(({ name }) => names.has(name));
    return this.#built(typeUrl, recipes);
  }

  #listed(typeUrl: string): readonly Recipe[] {
    const parts = this.#input.parts.types.get(typeUrl) ?? [];
    const recipes = parts.flatMap((part) => {
      const plan = this.#plans.get(part) ?? finished(part.plan());
      this.#plans.set(part, plan);
      return plan.get(typeUrl) ?? [];
    });
    // Envoy would reject two of one name; the first one wins.
    return [...new Map(recipes.toReversed().map((recipe) => [recipe.name, recipe])).values()];
  }

  #asked(typeUrl: string, names: ReadonlySet<string>): readonly Recipe[] {
    return [...names].flatMap((name) => this.#input.parts.asked.get(typeUrl)?.plan(name) ?? []);
  }

  #built(typeUrl: string, recipes: readonly Recipe[]): readonly TranslatedResource[] {
    return recipes.flatMap((recipe) => {
      try {
        const json = typedJson(this.#input.registry, typeUrl, recipeBytes(recipe));
        const name = typeUrl === NAME_TABLE_TYPE ? "" : recipe.name;
        return [{ typeUrl, name, json, recipe }];
      } catch (thrown) {
        this.broken.push(
          `cannot build ${typeUrl.slice(typeUrl.lastIndexOf(".") + 1)} "${recipe.name}": ${errorText(thrown)}`,
        );
        return [];
      }
    });
  }
}

function byTypeAndName(one: TranslatedResource, other: TranslatedResource): number {
  const types = TYPE_ORDER.indexOf(one.typeUrl) - TYPE_ORDER.indexOf(other.typeUrl);
  return types !== 0 ? types : one.name < other.name ? -1 : Number(one.name > other.name);
}
