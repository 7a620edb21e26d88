/** Where the debug socket of an agent is, in its working folder. Its folder is private to the agent's account. */
export const DEBUG_SOCKET = "./etc/istio/proxy/debug/socket";
/** Where that of `serve` is, in the folder of the workload files. */
export const SHARED_DEBUG_SOCKET = "debug/socket";
