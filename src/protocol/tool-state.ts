/** Facts that tools keep in their conversation. */

import type { Result } from "../shared/errors.ts";
import type { Json } from "../shared/json.ts";

/**
 * Small facts that the tools of one conversation keep in it: they survive restarts and end with it. Keys have at most
 * 200 characters, values at most 64 KiB of JSON; `INVALID_INPUT` otherwise. Writing the same again changes nothing, so
 * a tool that is run twice under one operation id does no harm by it.
 *
 * STATE-1  `put` is durable when it resolves.
 * STATE-2  `null` is absence: `get` answers it for a key that is not there, `put` of it removes the key.
 */
export interface ToolState {
  get(key: string): Promise<Json>;
  put(key: string, value: Json): Promise<void>;
  /** Entries whose key starts with `prefix`, ascending by key; the first 1 000. */
  list(prefix: string): Promise<ToolStateEntry[]>;
}

export interface ToolStateEntry {
  key: string;
  value: Json;
}

/** What a `Conversation` offers the tools it runs: the RPC face of `ToolState`. */
export interface ToolStateApi {
  toolStateGet(key: string): Promise<Result<Json>>;
  toolStatePut(key: string, value: Json): Promise<Result<null>>;
  toolStateList(prefix: string): Promise<Result<ToolStateEntry[]>>;
}
