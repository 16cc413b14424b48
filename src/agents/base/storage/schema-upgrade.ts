/**
 * The schema of what an actor stores: a version, kept in the actor's own storage, and the ordered steps from older ones.
 * An actor that is created gets the newest schema at once; one that an older release left behind takes the steps when it
 * wakes, before anything else happens to it.
 *
 * UPGRADE-1  Steps are taken in order, each in one transaction with the version it leads to: a crash inside a step takes
 *            back all of it, and after a crash between two steps the next wake goes on with the second.
 * UPGRADE-2  Storage that is up to date costs no statement beyond the read of the value that carries its version.
 * UPGRADE-3  Storage of a newer version than the code's is refused with `UNAVAILABLE`, and nothing is written to it.
 */
import type { KeyValue } from "../../../ports/key-value.ts";
import type { SqlDatabase } from "../../../ports/sql-database.ts";
import { DramatisError } from "../../../shared/errors.ts";

/** The two halves of an actor's storage, which share their transactions. */
export interface ActorStores {
  database: SqlDatabase;
  keyValue: KeyValue;
}

/** A step that was released never changes; a change is a new one at the end. */
export interface SchemaStep {
  /** The version it leads to. */
  readonly version: number;
  /** What it does, in a few words. */
  readonly name: string;
  /** Runs inside a transaction: synchronous, and nothing but storage. */
  up(stores: ActorStores): void;
}

export interface ActorSchema {
  /** What has this schema, as errors name it. */
  readonly of: string;
  /** The version of storage that carries none. */
  readonly first: number;
  /** Ascending, without a gap, from `first` on. */
  readonly steps: readonly SchemaStep[];
}

/** The version that this code writes. */
export function newestVersion({ first, steps }: ActorSchema): number {
  return steps.at(-1)?.version ?? first;
}

/**
 * Brings storage from version `stored` to the newest; `record` writes the version reached. Answers whether there was
 * anything to do. Throws `UNAVAILABLE` for a version beyond the newest.
 */
export function upgrade(
  schema: ActorSchema,
  stores: ActorStores,
  stored: number,
  record: (version: number) => void,
): boolean {
  const newest = newestVersion(schema);
  if (stored > newest) throw refusal(schema, stored, newest);
  for (const { version, up } of schema.steps) {
    if (version <= stored) continue;
    stores.database.transaction(() => {
      up(stores);
      record(version);
    });
  }
  return stored < newest;
}

/** An object under a key that carries the schema's version beside its own members, so one read gives both. */
export class VersionedRecord<Value extends object> {
  constructor(
    private readonly schema: ActorSchema,
    private readonly stores: ActorStores,
    private readonly key: string,
  ) {}

  /** The object, once its actor's storage is up to date; `undefined` before the first `put`. Throws as `upgrade` does. */
  get(): Value | undefined {
    const { keyValue } = this.stores;
    const stored = keyValue.get<Versioned<Value>>(this.key);
    if (stored === undefined) return undefined;
    const { schema = this.schema.first, ...value } = stored;
    const isOlder = upgrade(this.schema, this.stores, schema, (version) => {
      keyValue.put(this.key, { ...keyValue.get<Versioned<Value>>(this.key), schema: version });
    });
    // SAFETY: a key belongs to one store, which names the type it put there.
    return isOlder ? this.get() : (value as unknown as Value);
  }

  put(value: Value): void {
    this.stores.keyValue.put(this.key, { ...value, schema: newestVersion(this.schema) });
  }
}

type Versioned<Value> = Value & { schema?: number };

/**
 * Opens storage now. Storage that is refused is refused again to everyone who asks for it, so that its actor lives on
 * and can answer.
 */
export function openOrRefuse<Opened>(open: () => Opened): () => Opened {
  try {
    const opened = open();
    return () => opened;
  } catch (error) {
    if (!isRefusal(error)) throw error;
    return () => {
      throw error;
    };
  }
}

/** Whether an error says that storage is newer than the code. */
export function isRefusal(error: unknown): error is DramatisError {
  return error instanceof DramatisError && error.code === "UNAVAILABLE";
}

function refusal({ of }: ActorSchema, stored: number, newest: number): DramatisError {
  return new DramatisError(
    "UNAVAILABLE",
    `The storage of this ${of} has schema version ${stored}, and this code knows versions up to ${newest}: a newer release has been here. Deploy that release again, or a later one.`,
    { retriable: true },
  );
}
