/**
 * The directory of dead letters: one row per dead letter of an actor of the tenant. The actors own the letters and write these rows.
 * Redelivery uses the directory to find the actor of a letter.
 *
 * DEAD-4  A row is deleted when its operation is 35 days old, like its letter. Each write to a tenant's list deletes up to 100 such rows,
 *         including rows of actors that never send again.
 */
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../ports/system.ts";
import type { DeadLetterView } from "../protocol/conversation-schemas.ts";
import { firstOperationId } from "../protocol/envelope.ts";
import { LETTER_KEPT_MS } from "../protocol/mailbox-api.ts";
import {
  bothOrders,
  DEFAULT_ORDER,
  DEFAULT_PAGE_SIZE,
  type Page,
  type PageOptions,
  pageOf,
} from "../shared/page.ts";
import { D1Queries, type Databases } from "./queries.ts";

/** The part of the directory that an actor writes. Repeated writes are no-ops. */
export interface DeadLetterWriter {
  put(tenant: string, letter: DeadLetterView): Promise<void>;
  remove(tenant: string, operationId: string): Promise<void>;
}

export interface DeadLetterDirectory extends DeadLetterWriter {
  /** Returns letters ascending by operation id, which is by the operation's age. Throws `UNAVAILABLE`. */
  list(tenant: string, options?: PageOptions): Promise<Page<DeadLetterView>>;
  /** Returns the letter of an operation, or `null`. Throws `UNAVAILABLE`. */
  find(tenant: string, operationId: string): Promise<DeadLetterView | null>;
}

const AFTER_ALL = "op~";

const PUT = `INSERT INTO dead_letters (tenant, operation_id, letter) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET letter = excluded.letter`;
const REMOVE = "DELETE FROM dead_letters WHERE tenant = ?1 AND operation_id = ?2";
/** Deletes a batch of letters that their actors no longer keep either. */
const TRIM = `DELETE FROM dead_letters WHERE tenant = ?1 AND operation_id IN
(SELECT operation_id FROM dead_letters WHERE tenant = ?1 AND operation_id < ?2 ORDER BY operation_id LIMIT 100)`;
const FIND = "SELECT letter FROM dead_letters WHERE tenant = ?1 AND operation_id = ?2";
const LIST = bothOrders(
  (comparison, order) => `SELECT letter FROM dead_letters
WHERE tenant = ?1 AND operation_id ${comparison} ?2 ORDER BY operation_id ${order} LIMIT ?3`,
);

type LetterRow = { letter: string };

/**
 * The dead letters of all tenants in D1.
 *
 * @example protected override deadLetterDirectory() { return new D1DeadLetters(this.env.LETTERS); }
 */
export class D1DeadLetters implements DeadLetterDirectory {
  readonly #queries: D1Queries;
  readonly #clock: Pick<Clock, "now" | "timer">;

  constructor(databases: Databases, clock: Pick<Clock, "now" | "timer"> = systemClock) {
    this.#queries = new D1Queries(databases, clock);
    this.#clock = clock;
  }

  async put(tenant: string, letter: DeadLetterView): Promise<void> {
    const before = firstOperationId(this.#clock.now() - LETTER_KEPT_MS);
    await this.#queries.write([PUT, tenant, letter.id, JSON.stringify(letter)], [TRIM, tenant, before]);
  }

  async remove(tenant: string, operationId: string): Promise<void> {
    await this.#queries.write([REMOVE, tenant, operationId]);
  }

  async list(tenant: string, options: PageOptions = {}): Promise<Page<DeadLetterView>> {
    const { limit = DEFAULT_PAGE_SIZE, order = DEFAULT_ORDER } = options;
    const cursor = options.cursor ?? (order === "asc" ? "" : AFTER_ALL);
    const rows = await this.#queries.read<LetterRow>(LIST[order], tenant, cursor, limit + 1);
    return pageOf(rows, limit, toLetter, (row) => toLetter(row).id);
  }

  async find(tenant: string, operationId: string): Promise<DeadLetterView | null> {
    const [row] = await this.#queries.read<LetterRow>(FIND, tenant, operationId);
    return row === undefined ? null : toLetter(row);
  }
}

function toLetter({ letter }: LetterRow): DeadLetterView {
  // SAFETY: only `put` writes this column.
  return JSON.parse(letter) as DeadLetterView;
}
