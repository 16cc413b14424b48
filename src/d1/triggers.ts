/**
 * The directory of triggers: one row per trigger, without its input and its secret. The actors own the triggers and write the rows when a
 * request changes a trigger.
 *
 * TRIGGERS-1  A list has the triggers that the principal may see (TRIGGER-1), in the order of their creation.
 * TRIGGERS-2  A page reads about as many rows as it has, regardless of other subjects' triggers.
 */
import type { Clock } from "../ports/clock.ts";
import type { TriggerSummary } from "../protocol/trigger-api.ts";
import { TRIGGER_ID } from "../shared/identifiers.ts";
import { bothOrders, type Page, type PageOptions, pageOf, pageOptionsSchema } from "../shared/page.ts";
import { mayReadAll, type Principal } from "../shared/principal.ts";
import { validate } from "../shared/validation.ts";
import { D1Queries, type Databases } from "./queries.ts";

/** The part of the directory that an actor writes. Repeated writes are no-ops. */
export interface TriggerWriter {
  put(tenant: string, trigger: TriggerSummary): Promise<void>;
  remove(tenant: string, id: string): Promise<void>;
}

export interface TriggerDirectory extends TriggerWriter {
  /** Returns the triggers that the principal may see. Throws `INVALID_INPUT` for an invalid cursor, and `UNAVAILABLE`. */
  list(principal: Principal, options?: PageOptions): Promise<Page<TriggerSummary>>;
}

const AFTER_ALL = "trig~";

const PUT = `INSERT INTO triggers (tenant, id, acts_as, summary, updated_at) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET acts_as = excluded.acts_as, summary = excluded.summary, updated_at = excluded.updated_at
WHERE excluded.updated_at >= triggers.updated_at`;
const REMOVE = "DELETE FROM triggers WHERE tenant = ?1 AND id = ?2";
const LIST_ALL = bothOrders(
  (comparison, order) => `SELECT summary FROM triggers
WHERE tenant = ?1 AND id ${comparison} ?2 ORDER BY id ${order} LIMIT ?3`,
);
/** `?4` is the subject. */
const LIST_OF_SUBJECT = bothOrders(
  (comparison, order) => `SELECT summary FROM triggers INDEXED BY triggers_by_subject
WHERE tenant = ?1 AND acts_as = ?4 AND id ${comparison} ?2 ORDER BY id ${order} LIMIT ?3`,
);

const optionsSchema = pageOptionsSchema((cursor) => TRIGGER_ID.test(cursor));

type TriggerRow = { summary: string };

export class D1Triggers implements TriggerDirectory {
  readonly #queries: D1Queries;

  constructor(databases: Databases, clock?: Pick<Clock, "timer">) {
    this.#queries = new D1Queries(databases, clock);
  }

  async put(tenant: string, trigger: TriggerSummary): Promise<void> {
    const { id, actsAs, updatedAt } = trigger;
    await this.#queries.write([PUT, tenant, id, actsAs, JSON.stringify(trigger), Date.parse(updatedAt)]);
  }

  async remove(tenant: string, id: string): Promise<void> {
    await this.#queries.write([REMOVE, tenant, id]);
  }

  async list(principal: Principal, options: PageOptions = {}): Promise<Page<TriggerSummary>> {
    const { limit, cursor, order } = validate(optionsSchema, options, "");
    const start = cursor ?? (order === "asc" ? "" : AFTER_ALL);
    const [statements, subjects] = mayReadAll(principal)
      ? [LIST_ALL, []]
      : [LIST_OF_SUBJECT, [principal.subject]];
    const values = [start, limit + 1, ...subjects];
    const rows = await this.#queries.read<TriggerRow>(statements[order], principal.tenant, ...values);
    return pageOf(rows, limit, toSummary, (row) => toSummary(row).id);
  }
}

function toSummary({ summary }: TriggerRow): TriggerSummary {
  // SAFETY: only `put` writes this column.
  return JSON.parse(summary) as TriggerSummary;
}
