/** Sprig's functions, each with any arguments. An input is the name of a function and JSON of its arguments. */
import { SPRIG_FUNCTIONS } from "@mizzen/go-template/sprig";
import { compileTemplate } from "@mizzen/go-template/template";
import { TemplateError } from "@mizzen/go-template/template-error";
import { toValue } from "@mizzen/go-template/value";
import { type FuzzTarget, readOrReject } from "./target.ts";

const LIMITS = { depth: 50, output: 64 * 1024, steps: 20_000 };

export const target: FuzzTarget = {
  maxBytes: 512,
  dictionary: [
    ...Object.keys(SPRIG_FUNCTIONS),
    "\n",
    '["a"]',
    '["a","b"]',
    '[1,"a"]',
    '["a",{"b":1}]',
    "[[1,2]]",
    '["a","b","c"]',
    "-1",
    "1e9",
    "null",
    '"(a+)+$"',
    '"%s"',
  ],
  run(input) {
    const text = input.toString();
    const end = text.indexOf("\n");
    const name = text.slice(0, Math.max(0, end));
    const args = parsed(text.slice(end + 1));
    if (!Object.hasOwn(SPRIG_FUNCTIONS, name) || !Array.isArray(args)) return;
    const call = `{{ ${name} ${args.map((_, i) => `(index . ${i})`).join(" ")} }}`;
    const options = { name: "t", functions: SPRIG_FUNCTIONS, limits: LIMITS };
    readOrReject(() => compileTemplate(call, options).execute(toValue(args)), TemplateError);
  },
};

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // other inputs are the business of the target for JSON
  }
}
