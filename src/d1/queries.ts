/** Queries on the lists of a tenant in D1. The first query of an isolate migrates the database. */
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../ports/system.ts";
import { DramatisError, unavailable } from "../shared/errors.ts";
import { inTime } from "./in-time.ts";
import { migrate } from "./migrate.ts";
import type { TenantDatabases } from "./tenant-databases.ts";

/** A statement and its values. The first value is the tenant (DATABASE-1). */
export type Query = [statement: string, tenant: string, ...values: (string | number | null)[]];

/** One database for all tenants, or the databases of a Worker. */
export type Databases = D1Database | TenantDatabases;

export class D1Queries {
  readonly #databases: Databases;
  readonly #clock: Pick<Clock, "timer">;

  constructor(databases: Databases, clock: Pick<Clock, "timer"> = systemClock) {
    this.#databases = databases;
    this.#clock = clock;
  }

  /** Runs statements of one tenant in one transaction. Throws `UNAVAILABLE` if the database does not answer in time. */
  async write(...queries: [Query, ...Query[]]): Promise<void> {
    const [[, tenant]] = queries;
    await inTime(this.#clock, async () => {
      const database = await this.#database("forWrites", tenant);
      await database.batch(queries.map((query) => bound(database, query)));
    });
  }

  /** As `write`. Returns the rows of each statement. Throws as `read`. */
  transact(...queries: [Query, ...Query[]]): Promise<Record<string, unknown>[][]> {
    const [[, tenant]] = queries;
    return this.#answer(async () => {
      const database = await this.#database("forWrites", tenant);
      const results = await database.batch(queries.map((query) => bound(database, query)));
      // SAFETY: a row has its values by the names of its columns.
      return results.map((result) => result.results as Record<string, unknown>[]);
    });
  }

  /** Returns the rows of a query. Throws `UNAVAILABLE` if the database fails or does not answer in time. */
  read<Row>(...query: Query): Promise<Row[]> {
    return this.#rows("forReads", query);
  }

  /** Runs a statement that writes, and returns its rows. Throws as `read`. */
  change<Row>(...query: Query): Promise<Row[]> {
    return this.#rows("forWrites", query);
  }

  #rows<Row>(use: "forReads" | "forWrites", query: Query): Promise<Row[]> {
    return this.#answer(async () => {
      const [, tenant] = query;
      const { results } = await bound(await this.#database(use, tenant), query).all<Row>();
      return results;
    });
  }

  async #answer<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
    try {
      return await inTime(this.#clock, ask);
    } catch (cause) {
      console.error("A query of the directory failed:", cause);
      if (cause instanceof DramatisError) throw cause;
      throw unavailable("Lists cannot be read right now; retry in a moment.", {
        retriable: true,
        cause,
      });
    }
  }

  async #database(use: "forReads" | "forWrites", tenant: string): Promise<D1Database> {
    const databases = this.#databases;
    const database = async () => ("prepare" in databases ? databases : databases[use](tenant));
    await migrate(await database());
    // A migration takes time, in which the tenant may begin to move.
    return database();
  }
}

function bound(database: D1Database, [statement, ...values]: Query): D1PreparedStatement {
  return database.prepare(statement).bind(...values);
}
