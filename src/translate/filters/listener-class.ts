/** Which side of a connection a listener stands on. */
export type ListenerClass = "outbound" | "inbound" | "gateway";
