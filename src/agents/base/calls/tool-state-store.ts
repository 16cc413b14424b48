/** State that tools store by key in the actor that calls them. */
import type { KeyValue } from "../../../ports/key-value.ts";
import type { ToolStateEntry } from "../../../protocol/executor-api.ts";
import { checkStateEntry, MAX_STATE_ENTRIES } from "../../../protocol/tool-state.ts";
import type { Json } from "../../../shared/json.ts";

const PREFIX = "tool:";

export class ToolStateStore {
  constructor(private readonly keyValue: KeyValue) {}

  /** Returns `null` for an unknown key. */
  get(key: string): Json {
    return this.keyValue.get<Json>(PREFIX + key) ?? null;
  }

  /** `null` removes the key. Throws `INVALID_INPUT` for an entry beyond the limits. */
  put(key: string, value: Json): void {
    checkStateEntry(key, value);
    if (value === null) this.keyValue.delete(PREFIX + key);
    else this.keyValue.put(PREFIX + key, value);
  }

  /** Returns at most `MAX_STATE_ENTRIES`. */
  list(prefix: string): ToolStateEntry[] {
    return this.keyValue
      .list<Json>(PREFIX + prefix, MAX_STATE_ENTRIES)
      .map(([key, value]) => ({ key: key.slice(PREFIX.length), value }));
  }
}
