/** Configuration in TypeScript: `import { defineConfig } from "mizzen/config"`. What it offers is declared in `api.ts`. */
export { checkConfig, defineConfig, toYaml } from "#config/authoring/define-config.ts";
