/** The directory's SQL. Lists take `?1` tenant, `?2` and `?3` the key to continue after, `?4` the number of rows. */
import { bothOrders } from "../shared/page.ts";

/** Maximum size of a page, for personas can be large. A page has at least one row. */
export const MAX_PAGE_CHARACTERS = 4_000_000;

export const PUT_AGENT = `INSERT INTO agents (tenant, created_at, id, persona, project_ids, updated_at, metadata)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT DO UPDATE SET
  persona = excluded.persona, project_ids = excluded.project_ids, updated_at = excluded.updated_at,
  metadata = excluded.metadata
WHERE excluded.updated_at >= agents.updated_at`;

/** Totals only grow, so a late put is a no-op. */
export const PUT_USAGE = `INSERT INTO usage
  (tenant, agent_id, conversation_id, calls, input_tokens, cached_input_tokens, output_tokens, nano_dollars)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT DO UPDATE SET calls = excluded.calls, input_tokens = excluded.input_tokens,
  cached_input_tokens = excluded.cached_input_tokens, output_tokens = excluded.output_tokens,
  nano_dollars = excluded.nano_dollars
WHERE (excluded.calls, excluded.input_tokens, excluded.output_tokens)
  > (usage.calls, usage.input_tokens, usage.output_tokens)`;

/** Returns one row, with the names of `AgentUsage`. */
export const SUM_USAGE = `SELECT COUNT(*) AS conversations, TOTAL(calls) AS calls, TOTAL(input_tokens) AS inputTokens,
  TOTAL(cached_input_tokens) AS cachedInputTokens, TOTAL(output_tokens) AS outputTokens,
  TOTAL(nano_dollars) AS nanoDollars
FROM usage WHERE tenant = ?1 AND agent_id = ?2`;

/** `more` is 1 if another row follows. */
export const LIST_AGENTS = bothOrders(
  (
    comparison,
    order,
  ) => `SELECT tenant, created_at, id, persona, project_ids, metadata, updated_at, more FROM (
  SELECT *,
    ROW_NUMBER() OVER keys AS position,
    SUM(LENGTH(persona)) OVER keys AS characters,
    LEAD(1, 1, 0) OVER keys AS more
  FROM (
    SELECT * FROM agents WHERE tenant = ?1 AND (created_at, id) ${comparison} (?2, ?3)
    ORDER BY created_at ${order}, id ${order} LIMIT ?4 + 1
  )
  WINDOW keys AS (ORDER BY created_at ${order}, id ${order})
)
WHERE position = 1 OR (position <= ?4 AND characters <= ${MAX_PAGE_CHARACTERS})
ORDER BY position`,
);

/** The number of a run's newest journal entry only grows, so a late put is a no-op. */
export const PUT_RUN = `INSERT INTO runs
  (tenant, created_at, id, started_by, library, workflow, version, project_id, status, seq, ended_at, error_code, name,
  name_key)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
ON CONFLICT DO UPDATE SET status = excluded.status, seq = excluded.seq, ended_at = excluded.ended_at,
  error_code = excluded.error_code
WHERE excluded.seq > runs.seq`;

export const ACTIVE_RUNS = `SELECT COUNT(*) AS active FROM runs INDEXED BY runs_by_status
WHERE tenant = ?1 AND status IN ('running', 'waiting') AND project_id = ?2`;

/** The runs of a list. Absent members do not filter. */
export interface RunsOf {
  starter?: string;
  status?: string;
  workflow?: { library: string; id: string; version?: number };
  /** A part of the name, or of `library/id` of the workflow, in lower case. */
  text?: string;
}

/** Most runs that a page of a list looks at. */
const MAX_SCANNED_RUNS = 2_000;

/**
 * Returns the statement of a list of runs, and the values from `?5` on. The list reads one index: of its starter, otherwise of its
 * workflow, otherwise of its status. The other filters leave out rows of that. `found` is 1 for a row of the list. Another row is the last
 * row that a full scan looked at.
 */
export function listRuns(
  orderName: "asc" | "desc",
  { starter, status, workflow, text }: RunsOf,
): [statement: string, values: (string | number)[]] {
  const values: (string | number)[] = [];
  const place = (value: string | number) => `?${values.push(value) + 4}`;
  const equal = (column: string, value: string | number | undefined) =>
    value === undefined ? [] : [`${column} = ${place(value)}`];
  const byStarter = equal("started_by", starter);
  const byWorkflow = [...equal("library", workflow?.library), ...equal("workflow", workflow?.id)];
  const byStatus = equal("status", status);
  const others = equal("version", workflow?.version);
  if (text !== undefined) {
    const part = place(text);
    others.push(`(instr(name_key, ${part}) > 0 OR instr(lower(library || '/' || workflow), ${part}) > 0)`);
  }
  const [[index, indexed] = ["", []], ...unused] = (
    [
      [" INDEXED BY runs_by_starter", byStarter],
      [" INDEXED BY runs_by_workflow", byWorkflow],
      [" INDEXED BY runs_by_status", byStatus],
    ] as const
  ).filter(([, conditions]) => conditions.length > 0);
  const found = [...unused.flatMap(([, conditions]) => conditions), ...others].join(" AND ");
  const statement = bothOrders((comparison, order) => {
    const range = ["tenant = ?1", `(created_at, id) ${comparison} (?2, ?3)`, ...indexed].join(" AND ");
    const rows = `FROM runs${index} WHERE ${range} ORDER BY created_at ${order}, id ${order}`;
    // SQLite reads no further row after the last row of the page. A window function would read all of them.
    return found === ""
      ? `SELECT *, 1 AS found ${rows} LIMIT ?4`
      : `SELECT *, 1 AS found FROM (SELECT * ${rows} LIMIT ${MAX_SCANNED_RUNS}) WHERE ${found}
UNION ALL SELECT *, 0 FROM (SELECT * ${rows} LIMIT 1 OFFSET ${MAX_SCANNED_RUNS - 1}) LIMIT ?4`;
  });
  return [statement[orderName], values];
}
