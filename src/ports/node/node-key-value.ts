/** The `KeyValue` of Node: a table in the actor's `NodeSqlDatabase`, which shares its transactions. */
import { deserialize, serialize } from "node:v8";
import { tooLarge } from "../../shared/errors.ts";
import type { KeyValue } from "../key-value.ts";
import { checkKey, MAX_VALUE_BYTES } from "../sql-values.ts";
import type { NodeSqlDatabase } from "./node-sql-database.ts";

type ValueRow = { value: Uint8Array };
type EntryRow = { key: string; value: Uint8Array };

export class NodeKeyValue implements KeyValue {
  constructor(private readonly db: NodeSqlDatabase) {
    db.run(
      "CREATE TABLE IF NOT EXISTS _node_kv (key TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL) WITHOUT ROWID",
    );
  }

  get<Value>(key: string): Value | undefined {
    const [row] = this.db.all<ValueRow>("SELECT value FROM _node_kv WHERE key = ?", key);
    // SAFETY: a key belongs to one store, which determines its type.
    return row === undefined ? undefined : (deserialize(row.value) as Value);
  }

  put<Value>(key: string, value: Value): void {
    checkKey(key);
    const bytes = serialize(value);
    if (bytes.byteLength > MAX_VALUE_BYTES)
      throw tooLarge(`A value under a key may have at most ${MAX_VALUE_BYTES} bytes: use rows.`);
    this.db.run(
      "INSERT INTO _node_kv (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
      key,
      bytes,
    );
  }

  delete(key: string): boolean {
    return this.db.all("DELETE FROM _node_kv WHERE key = ? RETURNING 1 AS gone", key).length > 0;
  }

  list<Value>(prefix: string, limit: number, after = ""): [key: string, value: Value][] {
    const entries: [key: string, value: Value][] = [];
    const ascending = "SELECT key, value FROM _node_kv WHERE key >= ?1 AND key > ?2 ORDER BY key LIMIT ?3";
    for (const row of this.db.each<EntryRow>(ascending, prefix, after, limit)) {
      if (!row.key.startsWith(prefix)) break;
      // SAFETY: as in `get`.
      entries.push([row.key, deserialize(row.value) as Value]);
    }
    return entries;
  }
}
