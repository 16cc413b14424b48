/** Queries on a D1 database. The first query of an isolate migrates the database. */
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../ports/system.ts";
import { DramatisError } from "../shared/errors.ts";
import { inTime } from "./in-time.ts";
import { migrate } from "./migrate.ts";

type Query = [statement: string, ...values: (string | number | null)[]];

export class D1Queries {
  readonly #database: D1Database;
  readonly #clock: Pick<Clock, "timer">;

  constructor(database: D1Database, clock: Pick<Clock, "timer"> = systemClock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Runs statements in one transaction. Throws `UNAVAILABLE` if the database does not answer in time. */
  async write(...queries: Query[]): Promise<void> {
    await inTime(this.#clock, async () => {
      await migrate(this.#database);
      await this.#database.batch(queries.map((query) => this.#bind(query)));
    });
  }

  /** Returns the rows of a query. Throws `UNAVAILABLE` if the database fails or does not answer in time. */
  async read<Row>(...query: Query): Promise<Row[]> {
    try {
      const { results } = await inTime(this.#clock, async () => {
        await migrate(this.#database);
        return this.#bind(query).all<Row>();
      });
      return results;
    } catch (cause) {
      console.error("Reading from the directory failed:", cause);
      throw new DramatisError("UNAVAILABLE", "Lists cannot be read right now; retry in a moment.", {
        retriable: true,
        cause,
      });
    }
  }

  #bind([statement, ...values]: Query): D1PreparedStatement {
    return this.#database.prepare(statement).bind(...values);
  }
}
