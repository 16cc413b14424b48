/** Facts that tools keep in the conversation, by key. */
import type { KeyValue } from "../../../ports/key-value.ts";
import type { ToolStateEntry } from "../../../protocol/executor-api.ts";
import type { Json } from "../../../shared/json.ts";

const PREFIX = "tool:";

export class ToolStateStore {
  constructor(private readonly keyValue: KeyValue) {}

  /** Returns `null` for an unknown key. */
  get(key: string): Json {
    return this.keyValue.get<Json>(PREFIX + key) ?? null;
  }

  /** `null` removes the key. */
  put(key: string, value: Json): void {
    if (value === null) this.keyValue.delete(PREFIX + key);
    else this.keyValue.put(PREFIX + key, value);
  }

  list(prefix: string, limit: number): ToolStateEntry[] {
    return this.keyValue
      .list<Json>(PREFIX + prefix, limit)
      .map(([key, value]) => ({ key: key.slice(PREFIX.length), value }));
  }
}
