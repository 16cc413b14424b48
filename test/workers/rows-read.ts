/** The rows that D1 reads and writes for an action. */
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

/** Runs an action that writes. Returns the rows that it writes, entries of indexes included, and its statements. */
export async function rowsWritten(
  action: () => Promise<unknown>,
): Promise<{ rows: number; statements: number }> {
  const batch = vi.spyOn(Object.getPrototypeOf(env.DB) as D1Database, "batch");
  try {
    await action();
    const results = (await Promise.all(batch.mock.results.map(({ value }) => value))).flat();
    const rows = results.reduce((total, { meta }) => total + meta.rows_written, 0);
    return { rows, statements: results.length };
  } finally {
    batch.mockRestore();
  }
}
