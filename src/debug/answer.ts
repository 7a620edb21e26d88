/** Debug pages for callers over xDS. */
import type { Caller } from "#model/ports.ts";
import { type AccessOptions, mayAskFor } from "./access.ts";
import type { DebugState } from "./pages/page.ts";
import { DEBUG_PAGES } from "./pages/pages.ts";
import { answerOf } from "./routes.ts";

/** The page of that name, `syncz` or `config_dump?proxyID=...`, as far as the caller may see it. */
export function debugAnswer(
  question: string,
  caller: Caller,
  state: DebugState & Pick<AccessOptions, "seesAll">,
): { readonly body: string } | { readonly refused: string } {
  const [name = "", query = ""] = question.replace(/^\/?(debug\/)?/, "").split("?");
  const scope = state.seesAll(caller.namespace) ? undefined : caller.namespace;
  if (!mayAskFor(name, scope)) return { refused: `The page "${name}" is not for ${caller.identity}` };
  const page = DEBUG_PAGES.find(({ path }) => path === `/debug/${name}`);
  if (page === undefined) return { refused: `There is no debug page "${name}"` };
  return { body: answerOf(page, state, { scope, query: Object.fromEntries(new URLSearchParams(query)) }).body };
}
