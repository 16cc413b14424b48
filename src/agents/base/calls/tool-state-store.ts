/** State that tools store by key in the actor that calls them. */
import type { KeyValue } from "../../../ports/key-value.ts";
import type { ToolStateEntry } from "../../../protocol/executor-api.ts";
import { REMOTE_STATE } from "../../../protocol/remote-call.ts";
import { checkStateEntry, MAX_STATE_ENTRIES } from "../../../protocol/tool-state.ts";
import type { Json } from "../../../shared/json.ts";

const PREFIX = "tool:";

/** Returns the stored key of an entry. The calls of remote agents are not among the entries that tools list. */
const storedKey = (key: string) => (key.startsWith(REMOTE_STATE) ? key : PREFIX + key);

export class ToolStateStore {
  constructor(private readonly keyValue: KeyValue) {}

  /** Returns `null` for an unknown key. */
  get(key: string): Json {
    return this.keyValue.get<Json>(storedKey(key)) ?? null;
  }

  /** `null` removes the key. Throws `INVALID_INPUT` for an entry beyond the limits. */
  put(key: string, value: Json): void {
    checkStateEntry(key, value);
    if (value === null) this.keyValue.delete(storedKey(key));
    else this.keyValue.put(storedKey(key), value);
  }

  /** Returns at most `MAX_STATE_ENTRIES`. */
  list(prefix: string): ToolStateEntry[] {
    return this.keyValue
      .list<Json>(PREFIX + prefix, MAX_STATE_ENTRIES)
      .map(([key, value]) => ({ key: key.slice(PREFIX.length), value }));
  }
}
