/**
 * The directory of dead letters: one row for each that an actor of the tenant has. The actors own them and write these
 * rows; redelivering begins by finding here whose a letter is.
 *
 * DEAD-4  A row leaves when its operation is 35 days old, as its letter does: whatever is written to a tenant's list takes
 *         up to 100 such rows out of it, also those of actors that never send again.
 */

import { firstOperationId } from "../protocol/envelope.ts";
import { LETTER_KEPT_MS } from "../protocol/mailbox-api.ts";
import type { DeadLetterView } from "../protocol/views.ts";
import { DramatisError } from "../shared/errors.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import { migrate } from "./migrate.ts";

export interface DeadLetterDirectory extends DeadLetterWriter {
  /** Ascending by operation id, which is by the operation's age. Throws `UNAVAILABLE` when the store does not answer. */
  list(tenant: string, options?: PageOptions): Promise<Page<DeadLetterView>>;
  /** The letter of an operation; `null` if the tenant has none. */
  find(tenant: string, operationId: string): Promise<DeadLetterView | null>;
}

const DEFAULT_LIMIT = 50;
const AFTER_ALL = "op~";

const PUT = `INSERT INTO dead_letters (tenant, operation_id, letter) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET letter = excluded.letter`;
const REMOVE = "DELETE FROM dead_letters WHERE tenant = ?1 AND operation_id = ?2";
/** Letters of a tenant that their actors no longer keep either; in batches, whenever one is written. */
const TRIM = `DELETE FROM dead_letters WHERE tenant = ?1 AND operation_id IN
(SELECT operation_id FROM dead_letters WHERE tenant = ?1 AND operation_id < ?2 ORDER BY operation_id LIMIT 100)`;
const FIND = "SELECT letter FROM dead_letters WHERE tenant = ?1 AND operation_id = ?2";
const LIST = {
  asc: "SELECT letter FROM dead_letters WHERE tenant = ?1 AND operation_id > ?2 ORDER BY operation_id LIMIT ?3",
  desc: "SELECT letter FROM dead_letters WHERE tenant = ?1 AND operation_id < ?2 ORDER BY operation_id DESC LIMIT ?3",
};

type LetterRow = { letter: string };

export class D1DeadLetters implements DeadLetterDirectory {
  readonly #database: D1Database;

  constructor(database: D1Database) {
    this.#database = database;
  }

  async put(tenant: string, letter: DeadLetterView): Promise<void> {
    await migrate(this.#database);
    await this.#database.batch([
      this.#database.prepare(PUT).bind(tenant, letter.id, JSON.stringify(letter)),
      this.#database.prepare(TRIM).bind(tenant, firstOperationId(Date.now() - LETTER_KEPT_MS)),
    ]);
  }

  async remove(tenant: string, operationId: string): Promise<void> {
    await migrate(this.#database);
    await this.#database.prepare(REMOVE).bind(tenant, operationId).run();
  }

  async list(tenant: string, options: PageOptions = {}): Promise<Page<DeadLetterView>> {
    const { limit = DEFAULT_LIMIT, order = "asc" } = options;
    const cursor = options.cursor ?? (order === "asc" ? "" : AFTER_ALL);
    const letters = await this.#read(LIST[order], tenant, cursor, limit + 1);
    const items = letters.slice(0, limit);
    const last = items.at(-1);
    return { items, ...(letters.length > limit && last !== undefined ? { nextCursor: last.id } : {}) };
  }

  async find(tenant: string, operationId: string): Promise<DeadLetterView | null> {
    const [letter] = await this.#read(FIND, tenant, operationId);
    return letter ?? null;
  }

  async #read(statement: string, ...values: (string | number)[]): Promise<DeadLetterView[]> {
    try {
      await migrate(this.#database);
      const { results } = await this.#database
        .prepare(statement)
        .bind(...values)
        .all<LetterRow>();
      // SAFETY: only `put` writes this column.
      return results.map(({ letter }) => JSON.parse(letter) as DeadLetterView);
    } catch (cause) {
      console.error("The dead letters cannot be read:", cause);
      throw new DramatisError(
        "UNAVAILABLE",
        "Dead letters cannot be listed right now. Try again in a moment.",
        {
          retriable: true,
          cause,
        },
      );
    }
  }
}

/** The part of the directory that an actor writes. Doing either twice is doing it once. */
export interface DeadLetterWriter {
  put(tenant: string, letter: DeadLetterView): Promise<void>;
  remove(tenant: string, operationId: string): Promise<void>;
}
