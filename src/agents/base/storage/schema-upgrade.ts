/**
 * The schema of an actor's storage: a version, kept in that storage, and the ordered steps from older versions. A new actor
 * gets the newest schema. An actor of an older release takes the steps when it wakes, before anything else.
 *
 * UPGRADE-1  Steps run in order, each in one transaction with the version it leads to. A crash inside a step takes back the
 *            whole step; after a crash between two steps the next wake continues with the second.
 * UPGRADE-2  For current storage, the only cost is the read of the value that contains its version.
 * UPGRADE-3  Storage of a newer version than the code's is refused with `UNAVAILABLE`, and nothing is written to it.
 * UPGRADE-4  An actor keeps a refusal of its storage for its life. Every other error of its start ends that start only.
 */
import type { KeyValue } from "../../../ports/key-value.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { DramatisError } from "../../../shared/errors.ts";

/** Interval between checks of storage that was refused, in milliseconds. */
export const REFUSED_RETRY_MS = 60_000;

/** Storage that this code cannot use: a newer release wrote it, or another program did. */
export class StorageRefusal extends DramatisError {
  constructor(message: string, options?: { retriable: boolean }) {
    super("UNAVAILABLE", message, options);
  }
}

/** Both halves of an actor's storage, which share their transactions. */
export interface ActorStores {
  database: SqlDatabase;
  keyValue: KeyValue;
}

/** A released step never changes. A change is a new step at the end. */
export interface SchemaStep {
  /** The version that the step leads to. */
  readonly version: number;
  readonly name: string;
  /** Changes the storage, inside a transaction. Synchronous, without other effects. */
  up(stores: ActorStores): void;
}

export interface ActorSchema {
  /** The owner of the storage, for error messages. */
  readonly of: string;
  /** The version of storage without a stored version. */
  readonly first: number;
  /** Ascending without gaps, from the version after `first`. */
  readonly steps: readonly SchemaStep[];
}

export function newestVersion({ first, steps }: ActorSchema): number {
  return steps.at(-1)?.version ?? first;
}

/**
 * Upgrades storage from version `stored` to the newest. `record` writes each version that is reached. Returns true if it ran a step. Throws
 * `UNAVAILABLE` for a version beyond the newest.
 */
export function upgrade(
  schema: ActorSchema,
  stores: ActorStores,
  stored: number,
  record: (version: number) => void,
): boolean {
  const newest = newestVersion(schema);
  if (stored > newest) {
    throw new StorageRefusal(
      `The storage of this ${schema.of} has schema version ${stored} of a newer release; this code supports up to ${newest}. Deploy that release again, or a later release.`,
      { retriable: true },
    );
  }
  for (const { version, up } of schema.steps) {
    if (version <= stored) continue;
    stores.database.transaction(() => {
      up(stores);
      record(version);
    });
  }
  return stored < newest;
}

/** An object under a key, stored with the schema's version beside its own members, so one read returns both. */
export class VersionedRecord<Value extends object> {
  constructor(
    private readonly schema: ActorSchema,
    private readonly stores: ActorStores,
    private readonly key: string,
  ) {}

  /** Brings the storage up to date and returns the object; `undefined` before the first `put`. Throws as `upgrade`. */
  get(): Value | undefined {
    const { keyValue } = this.stores;
    const stored = keyValue.get<Versioned<Value>>(this.key);
    if (stored === undefined) return undefined;
    const { schema = this.schema.first, ...value } = stored;
    const isOlder = upgrade(this.schema, this.stores, schema, (version) => {
      keyValue.put(this.key, { ...keyValue.get<Versioned<Value>>(this.key), schema: version });
    });
    // SAFETY: a key belongs to one store, which determines its type.
    return isOlder ? this.get() : (value as unknown as Value);
  }

  put(value: Value): void {
    this.stores.keyValue.put(this.key, { ...value, schema: newestVersion(this.schema) });
  }
}

type Versioned<Value> = Value & { schema?: number };

/** Opens storage now. If it is refused, each later use throws that refusal again, and the actor can still answer. */
export function openOrRefuse<Opened>(open: () => Opened): () => Opened {
  try {
    const opened = open();
    return () => opened;
  } catch (error) {
    if (!(error instanceof StorageRefusal)) throw error;
    return () => {
      throw error;
    };
  }
}
