/**
 * How a proxy is told from its app where there is only one account: by a mark on what it sends, instead of by its user.
 * Envoy marks its sockets, as it is told by an addition to its bootstrap; the capture rules look for the mark
 * (`rootless/marked-rules.ts`). The agent marks nothing, so the two servers that it talks to are spared by their
 * addresses: the control plane by those rules, the name server by a resolv.conf of the proxy's own.
 */
import { PROXY_ID } from "../mesh/mesh.ts";

export const PROXY_MARK = PROXY_ID;

/** Files in a member's `etc` folder that only such a proxy looks at. */
export const PROXY_RESOLV_CONF = "resolv.conf.proxy";
export const PROXY_BOOTSTRAP = "bootstrap.proxy";

const SOL_SOCKET = 1;
const SO_MARK = 36;
const MARK = { description: "mark", level: SOL_SOCKET, name: SO_MARK, int_value: PROXY_MARK, state: "STATE_PREBIND" };

/** What Envoy's bootstrap needs beside what the agent writes. */
export const MARKING_BOOTSTRAP = JSON.stringify({
  cluster_manager: { upstream_bind_config: { socket_options: [MARK] } },
});
