/** The rows that D1 reads for an action. */
import { env } from "cloudflare:workers";
import { vi } from "vitest";

/** Runs an action that reads lists. Returns the rows that its queries read, entries of indexes included. */
export async function rowsRead(action: () => Promise<unknown>): Promise<number> {
  const statement: D1PreparedStatement = Object.getPrototypeOf(env.DB.prepare("SELECT 1"));
  const all = vi.spyOn(statement, "all");
  try {
    await action();
    let total = 0;
    for (const { value } of all.mock.results) total += (await value).meta.rows_read;
    return total;
  } finally {
    all.mockRestore();
  }
}
