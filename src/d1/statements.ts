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
