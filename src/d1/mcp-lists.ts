/**
 * The tools of MCP servers, as each tenant has accepted them: one row for each tenant and server.
 *
 * MCPROW-1  A row changes only from the state that its writer has read.
 */
import type { Clock } from "../ports/clock.ts";
import { tooLarge } from "../shared/errors.ts";
import { D1Queries, type Databases } from "./queries.ts";

/** A row takes less than the 2 MB of D1. */
const MAX_LENGTH = 1_800_000;

const FIND = "SELECT rev, body FROM mcp_servers WHERE tenant = ?1 AND server = ?2";
const PUT = `INSERT INTO mcp_servers (tenant, server, rev, body) SELECT ?1, ?2, ?3 + 1, ?4
WHERE ?3 = COALESCE((SELECT rev FROM mcp_servers WHERE tenant = ?1 AND server = ?2), 0)
ON CONFLICT DO UPDATE SET rev = excluded.rev, body = excluded.body RETURNING rev`;

/** A stored value, and the number of its changes. */
export interface StoredList<List> {
  /** 0 if there is no row. */
  rev: number;
  list: List | null;
}

export class D1McpLists<List> {
  readonly #queries: D1Queries;

  constructor(databases: Databases, clock: Pick<Clock, "timer">) {
    this.#queries = new D1Queries(databases, clock);
  }

  /** Throws `UNAVAILABLE`, retriable, while the database does not answer. */
  async find(tenant: string, server: string): Promise<StoredList<List>> {
    const [row] = await this.#queries.read<{ rev: number; body: string }>(FIND, tenant, server);
    return row === undefined ? { rev: 0, list: null } : { rev: row.rev, list: JSON.parse(row.body) };
  }

  /** Writes a list after change `rev`. Returns `false` if there is a newer change. Throws as `find`, and `TOO_LARGE`. */
  async put(tenant: string, server: string, rev: number, list: List): Promise<boolean> {
    const body = JSON.stringify(list);
    if (body.length > MAX_LENGTH)
      throw tooLarge(`The tools of the MCP server "${server}" are too large together.`);
    return (await this.#queries.change(PUT, tenant, server, rev, body)).length > 0;
  }
}
