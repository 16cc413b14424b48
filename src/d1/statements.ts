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

export const PUT_CONVERSATION = `INSERT INTO conversations
  (tenant, created_at, id, agent_id, project_id, title, participants)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT DO UPDATE SET agent_id = excluded.agent_id, project_id = excluded.project_id,
  title = excluded.title, participants = excluded.participants`;

/** Deletes the users of the stored conversation who are not in `?4`, a JSON list. */
export const REMOVE_USERS = `DELETE FROM conversation_users
WHERE tenant = ?1 AND created_at = ?2 AND id = ?3
  AND user_id IN (
    SELECT participant.value ->> 'id' FROM conversations, json_each(conversations.participants) AS participant
    WHERE tenant = ?1 AND created_at = ?2 AND conversations.id = ?3 AND participant.value ->> 'type' = 'user')
  AND user_id NOT IN (SELECT value FROM json_each(?4))`;

export const PUT_USERS = `INSERT OR IGNORE INTO conversation_users (tenant, user_id, created_at, id)
SELECT ?1, value, ?2, ?3 FROM json_each(?4)`;

/** Totals only grow, so a late put changes nothing. */
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

export const LIST_CONVERSATIONS = bothOrders(
  (comparison, order) => `SELECT * FROM conversations
WHERE tenant = ?1 AND (created_at, id) ${comparison} (?2, ?3)
ORDER BY created_at ${order}, id ${order} LIMIT ?4`,
);

/** The number of a run's newest journal entry only grows, so a late put changes nothing. */
export const PUT_RUN = `INSERT INTO runs
  (tenant, created_at, id, started_by, library, workflow, version, project_id, status, seq, ended_at, error_code)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT DO UPDATE SET status = excluded.status, seq = excluded.seq, ended_at = excluded.ended_at,
  error_code = excluded.error_code
WHERE excluded.seq > runs.seq`;

/** The runs of a list. Absent members do not filter. */
export interface RunsOf {
  starter?: string;
  status?: string;
  workflow?: { library: string; id: string; version?: number };
}

/**
 * Returns the statement of a list of runs, and the values from `?5` on. The list reads one index: of its starter, otherwise of its
 * workflow, otherwise of its status. The other filters leave out rows of that.
 */
export function listRuns(
  orderName: "asc" | "desc",
  { starter, status, workflow }: RunsOf,
): [statement: string, values: (string | number)[]] {
  const values: (string | number)[] = [];
  const filters: string[] = [];
  const add = (column: string, value: string | number | undefined) => {
    if (value === undefined) return;
    values.push(value);
    filters.push(` AND ${column} = ?${values.length + 4}`);
  };
  add("started_by", starter);
  add("status", status);
  add("library", workflow?.library);
  add("workflow", workflow?.id);
  add("version", workflow?.version);
  const index =
    starter !== undefined
      ? " INDEXED BY runs_by_starter"
      : workflow !== undefined
        ? " INDEXED BY runs_by_workflow"
        : status !== undefined
          ? " INDEXED BY runs_by_status"
          : "";
  const statement = bothOrders(
    (comparison, order) => `SELECT * FROM runs${index}
WHERE tenant = ?1 AND (created_at, id) ${comparison} (?2, ?3)${filters.join("")}
ORDER BY created_at ${order}, id ${order} LIMIT ?4`,
  );
  return [statement[orderName], values];
}

/** `?5` is the user. */
export const LIST_CONVERSATIONS_OF_USER = bothOrders(
  (comparison, order) => `SELECT conversations.* FROM conversation_users AS member
JOIN conversations USING (tenant, created_at, id)
WHERE member.tenant = ?1 AND member.user_id = ?5 AND (member.created_at, member.id) ${comparison} (?2, ?3)
ORDER BY member.created_at ${order}, member.id ${order} LIMIT ?4`,
);

/** Notes the number of the newest journal entry of a place. A late put cannot lower it. */
export const PUT_APPROVAL_PLACE = `INSERT INTO approval_places (tenant, place, seq) VALUES (?1, ?2, ?3)
ON CONFLICT DO UPDATE SET seq = excluded.seq WHERE excluded.seq > approval_places.seq`;

const IS_NEWEST = "?3 >= (SELECT seq FROM approval_places WHERE tenant = ?1 AND place = ?2)";

export const REMOVE_APPROVERS = `DELETE FROM approvers WHERE tenant = ?1 AND place = ?2 AND ${IS_NEWEST}`;

export const REMOVE_APPROVALS = `DELETE FROM approvals WHERE tenant = ?1 AND place = ?2 AND ${IS_NEWEST}`;

/** `?4` is a JSON list of the requests. */
export const PUT_APPROVALS = `INSERT OR REPLACE INTO approvals
  (tenant, created_at, id, place, kind, agent_id, excluded, expires_at, request)
SELECT ?1, value ->> 'createdAt', value ->> 'id', ?2, value ->> 'kind', value ->> 'agentId', value ->> 'excluded',
  value ->> 'expiresAt', value -> 'request'
FROM json_each(?4) WHERE ${IS_NEWEST}`;

/** As `PUT_APPROVALS`. */
export const PUT_APPROVERS = `INSERT OR REPLACE INTO approvers (tenant, name, created_at, id, place)
SELECT ?1, name.value, item.value ->> 'createdAt', item.value ->> 'id', ?2
FROM json_each(?4) AS item, json_each(item.value -> 'approvers') AS name WHERE ${IS_NEWEST}`;

/** `?5` is a JSON list of the caller's names, `?6` the subject, `?7` the time; then the filters, each `null` if absent. */
export const LIST_APPROVALS = bothOrders(
  (comparison, order) => `SELECT approvals.created_at, approvals.id, approvals.request FROM approvers
JOIN approvals USING (tenant, created_at, id)
WHERE approvers.tenant = ?1 AND approvers.name IN (SELECT value FROM json_each(?5))
  AND (approvers.created_at, approvers.id) ${comparison} (?2, ?3)
  AND (approvals.excluded IS NULL OR approvals.excluded <> ?6)
  AND (approvals.expires_at IS NULL OR approvals.expires_at > ?7)
  AND (?8 IS NULL OR approvals.kind = ?8) AND (?9 IS NULL OR approvals.agent_id = ?9)
  AND (?10 IS NULL OR (approvals.kind = 'tool' AND approvals.place = ?10))
  AND (?11 IS NULL OR (approvals.kind = 'gate' AND approvals.place = ?11))
  AND (?12 IS NULL OR approvals.created_at >= ?12)
GROUP BY approvers.created_at, approvers.id
ORDER BY approvers.created_at ${order}, approvers.id ${order} LIMIT ?4`,
);
