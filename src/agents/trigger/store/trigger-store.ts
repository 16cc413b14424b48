/** The storage of a trigger in its actor's database: the trigger, and one row for each delivery of the last 14 days. */
import type { TriggerStarted } from "../../../protocol/trigger-api.ts";
import { conflict, type DramatisError, notFound } from "../../../shared/errors.ts";
import { type ActorSchema, type ActorStores, VersionedRecord } from "../../base/storage/schema-upgrade.ts";
import type { TriggerRecord } from "../core/record.ts";

const TRIGGER_SCHEMA: ActorSchema = { of: "trigger", first: 1, steps: [] };
const TRIGGER_KEY = "trigger";

const CREATE = `CREATE TABLE IF NOT EXISTS trigger_deliveries (
  id TEXT PRIMARY KEY, at INTEGER NOT NULL, hash TEXT NOT NULL, started TEXT NOT NULL) WITHOUT ROWID`;
const INDEX = "CREATE INDEX IF NOT EXISTS trigger_deliveries_at ON trigger_deliveries (at)";
const ADD = `INSERT INTO trigger_deliveries (id, at, hash, started) VALUES (?, ?, ?, ?)
  ON CONFLICT (id) DO UPDATE SET at = excluded.at, hash = excluded.hash, started = excluded.started`;
const FIND = "SELECT hash, started FROM trigger_deliveries WHERE id = ? AND at > ?";
const FORGET =
  "DELETE FROM trigger_deliveries WHERE id IN (SELECT id FROM trigger_deliveries WHERE at <= ? ORDER BY at LIMIT 100)";

export interface StoredDelivery {
  /** The SHA-256 of its body. */
  readonly hash: string;
  readonly started: TriggerStarted;
}

export class TriggerStore {
  readonly #record: VersionedRecord<TriggerRecord>;

  constructor(private readonly stores: ActorStores) {
    this.#record = new VersionedRecord(TRIGGER_SCHEMA, stores, TRIGGER_KEY);
  }

  /** Throws `UNAVAILABLE` for storage of a newer release. */
  checkVersion(): void {
    this.#record.get();
  }

  /** Returns `undefined` if the trigger was never created. */
  find(): TriggerRecord | undefined {
    return this.#record.get();
  }

  /** Throws `NOT_FOUND` if the trigger was never created. */
  get(): TriggerRecord {
    const record = this.find();
    if (record === undefined) throw unknownTrigger();
    return record;
  }

  /** Throws `CONFLICT` if the trigger exists. */
  create(record: TriggerRecord): void {
    if (this.find() !== undefined) throw conflict("This trigger already exists.");
    if (record.secret !== undefined) {
      this.stores.database.run(CREATE);
      this.stores.database.run(INDEX);
    }
    this.#record.put(record);
  }

  put(record: TriggerRecord): void {
    this.#record.put(record);
  }

  delivery(id: string, since: number): StoredDelivery | undefined {
    const [row] = this.stores.database.all<{ hash: string; started: string }>(FIND, id, since);
    // SAFETY: only `addDelivery` writes this column.
    return row && { hash: row.hash, started: JSON.parse(row.started) as TriggerStarted };
  }

  /** Adds a delivery, and deletes some deliveries from before `since`. */
  addDelivery(id: string, { hash, started }: StoredDelivery, now: number, since: number): void {
    this.stores.database.run(FORGET, since);
    this.stores.database.run(ADD, id, now, hash, JSON.stringify(started));
  }
}

/** The error for a trigger that does not exist or that the caller may not see. */
export function unknownTrigger(): DramatisError {
  return notFound("Trigger not found. A trigger of another subject is reported as not found.");
}
