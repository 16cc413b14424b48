/** A WebSocket of an actor, and its state that survives hibernation. */
import type { Connection } from "agents";
import type { FrameFilter } from "../../../protocol/frame-filter.ts";
import { UNAUTHORIZED_CLOSE } from "../../../protocol/frames.ts";
import type { Principal } from "../../../shared/principal.ts";
import type { Flow } from "./socket-reader.ts";

/** The state that a connection keeps over hibernation. */
export interface ConnectionMemory {
  principal: Principal;
  flow: Flow;
  /** The frames that the connection gets; all when absent. */
  filter?: FrameFilter;
  /** Ids of the calls that the connection has claimed, if any. */
  claims?: readonly string[];
}

export type Client = Connection<ConnectionMemory>;

export function closeUnauthorized(client: Client): void {
  client.close(UNAUTHORIZED_CLOSE, "UNAUTHENTICATED");
}
