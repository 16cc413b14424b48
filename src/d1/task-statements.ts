/**
 * The SQL of tasks: the turns that messages of one person to one agent started, the newest change first.
 *
 * The index `turns_by_update` has them in this order. A list looks at its rows one after another, and leaves out turns that do not match.
 */
import type { ListedTask, ListedTasks, TaskFilter } from "../protocol/turn-records.ts";
import { defined } from "../shared/defined.ts";
import { encodeCursor } from "../shared/page.ts";
import type { Query } from "./queries.ts";

export type TaskRow = {
  /** The time of the last change. */
  at: string;
  id: string;
  conversation_id: string;
  status: "active" | "completed" | "failed";
  error_code: string | null;
  /** 0 for the last row that the page looked at, if other rows follow. */
  found: 0 | 1;
};

/** The owner of tasks, and the agent that they belong to. */
interface TasksOf {
  tenant: string;
  subject: string;
  agentId: string;
}

/** Most turns that a page looks at, and that a count counts. */
const MAX_SCANNED_TASKS = 1_000;

const UPDATE = "COALESCE(record ->> 'completedAt', record ->> 'updatedAt', record ->> 'createdAt')";

/** `?1` is the tenant, `?2` the person, `?3` the agent, `?4` the earliest time of the last change. */
const OWN = `FROM turns INDEXED BY turns_by_update
WHERE tenant = ?1 AND record ->> 'userId' = ?2 AND record ->> 'agentId' = ?3 AND record ->> 'caller' IS NULL AND ${UPDATE} >= ?4`;

/** A person who left a conversation does not see its tasks. */
const READABLE = `EXISTS (SELECT 1 FROM conversation_users AS own
  WHERE own.tenant = ?1 AND own.user_id = ?2 AND own.created_at = found.conversation_at AND own.id = found.conversation_id)`;

const COLUMNS = `${UPDATE} AS at, id, conversation_id, conversation_at, status, record ->> 'errorCode' AS error_code`;

const STATUS = {
  active: "status = 'active'",
  completed: "status = 'completed'",
  failed: "status = 'failed' AND error_code IS NOT 'CANCELLED'",
  stopped: "status = 'failed' AND error_code = 'CANCELLED'",
} as const;

/** Returns the statement of a page of at most `limit` rows after a key. */
export function listTasks(
  { tenant, subject, agentId }: TasksOf,
  { since = "", ...filter }: TaskFilter,
  { after, limit }: { after: { at: string; id: string } | undefined; limit: number },
): Query {
  const values: (string | number)[] = [subject, agentId, since, limit];
  const range = after === undefined ? "" : ` AND (${UPDATE}, id) < (?6, ?7)`;
  if (after !== undefined) values.push(after.at, after.id);
  const scan = `SELECT ${COLUMNS} ${OWN}${range} ORDER BY ${UPDATE} DESC, id DESC`;
  const statement = `SELECT *, 1 AS found FROM (${scan} LIMIT ${MAX_SCANNED_TASKS}) AS found WHERE ${matching(filter, values)}
UNION ALL SELECT *, 0 FROM (${scan} LIMIT 1 OFFSET ${MAX_SCANNED_TASKS - 1}) LIMIT ?5`;
  return [statement, tenant, ...values];
}

/** Returns the statement that counts matching tasks among the newest `MAX_SCANNED_TASKS`. */
export function countTasks(
  { tenant, subject, agentId }: TasksOf,
  { since = "", ...filter }: TaskFilter,
): Query {
  const values: (string | number)[] = [subject, agentId, since];
  const scan = `SELECT ${COLUMNS} ${OWN} ORDER BY ${UPDATE} DESC, id DESC LIMIT ${MAX_SCANNED_TASKS}`;
  const statement = `SELECT COUNT(*) AS total FROM (${scan}) AS found WHERE ${matching(filter, values)}`;
  return [statement, tenant, ...values];
}

function matching({ conversation, status }: TaskFilter, values: (string | number)[]): string {
  const conditions = [READABLE];
  if (conversation !== undefined) conditions.push(`conversation_id = ?${values.push(conversation) + 1}`);
  if (status !== undefined) conditions.push(STATUS[status]);
  return conditions.join(" AND ");
}

/** Returns the page of rows. The caller requests one row more than `limit`. */
export function tasksOf(rows: readonly TaskRow[], limit: number): Omit<ListedTasks, "total"> {
  const page = rows.filter(({ found }) => found === 1).slice(0, limit);
  const last = rows.length > limit ? page.at(-1) : rows.findLast(({ found }) => found === 0);
  return { tasks: page.map(toTask), ...defined({ nextCursor: last && toTask(last).cursor }) };
}

function toTask({ at, id, conversation_id, status, error_code }: TaskRow): ListedTask {
  // The id of a row has the ids of the turn and of its conversation.
  const [turnId = ""] = id.split(":");
  return {
    ...{ id: turnId, conversationId: conversation_id, status, at },
    ...defined({ errorCode: error_code ?? undefined }),
    cursor: encodeCursor({ createdAt: Date.parse(at), id }),
  };
}
