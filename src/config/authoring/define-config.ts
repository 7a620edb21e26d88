/** Configuration written in TypeScript: what is behind `mizzen/config`. */
import { dump } from "js-yaml";
import { parseObject } from "../kinds/parse-object.ts";
import type * as api from "./api.ts";

export const defineConfig: typeof api.defineConfig = (...objects) => objects;

export const checkConfig: typeof api.checkConfig = (objects) =>
  objects.flatMap((raw) => {
    const { key, problems } = parseObject(raw);
    return problems.map(({ field, message, severity }) => ({ object: key, field, message, severity }));
  });

export const toYaml: typeof api.toYaml = (objects) =>
  objects.map((object) => `---\n${dump(object, { noRefs: true, lineWidth: -1 })}`).join("");
