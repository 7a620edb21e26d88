/** Sessions: requests of a client stay with one endpoint, which a cookie or a header of the answer names. */
import type { Any } from "@bufbuild/protobuf/wkt";
import {
  StatefulSessionPerRouteSchema,
  StatefulSessionSchema,
} from "#gen/envoy/extensions/filters/http/stateful_session/v3/stateful_session_pb.ts";
import { CookieBasedSessionStateSchema } from "#gen/envoy/extensions/http/stateful_session/cookie/v3/cookie_pb.ts";
import { HeaderBasedSessionStateSchema } from "#gen/envoy/extensions/http/stateful_session/header/v3/header_pb.ts";
import type { Session } from "#model/service/service.ts";
import { type Init, pack } from "../wire/encode.ts";

/** Name of the filter. */
export const SESSION_FILTER = "envoy.filters.http.stateful_session";

/** The filter's settings for one route or host, by its name; none without a session. */
export function sessionSettings(session: Session | undefined): Record<string, Any> {
  if (session === undefined) return {};
  const override = { case: "statefulSession" as const, value: filterOf(session) };
  return { [SESSION_FILTER]: pack(StatefulSessionPerRouteSchema, { override }) };
}

/** The filter's settings where it is for one service only. */
export function sessionConfig(session: Session): Any {
  return pack(StatefulSessionSchema, filterOf(session));
}

function filterOf(session: Session): Init<typeof StatefulSessionSchema> {
  return { sessionState: { name: `envoy.http.stateful_session.${session.by}`, typedConfig: stateOf(session) } };
}

/** Cookies end with the session of the browser. */
function stateOf({ by, name, path }: Session): Any {
  return by === "cookie"
    ? pack(CookieBasedSessionStateSchema, { cookie: { name, path } })
    : pack(HeaderBasedSessionStateSchema, { name });
}
