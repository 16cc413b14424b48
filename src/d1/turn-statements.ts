/**
 * The SQL of turns.
 *
 * A turn has a row in `turns`, and a row in `turn_labels` for each label: its agent, its user, its tools and the other values that lists
 * filter. The row of the turn names its labels. A list reads the rows of one label in order, and leaves out turns without the other labels.
 * The id of a row has the ids of the turn and of its conversation: a fork and an import have the turns of their original.
 */
import type { TurnFilter, TurnRecord } from "../protocol/turn-records.ts";
import type { ListKey, ListRange } from "../shared/page.ts";
import type { Query } from "./queries.ts";
import { MAX_PAGE_CHARACTERS } from "./statements.ts";

/** Returns a turn as `PUT_TURNS` takes it. */
export function turnRow(record: TurnRecord) {
  const { id, conversationId, createdAt, agentId, userId, status, errorCode, issues = {} } = record;
  const { tools, targetKinds, runIds } = record;
  const labels = [
    ...labelsOf({ agent: agentId, ...(userId !== undefined && { user: userId }) }),
    ...(status === "completed" ? [] : labelsOf({ status: errorCode === "CANCELLED" ? "stopped" : status })),
    ...(issues.toolFailures ? labelsOf({ issues: "tool" }) : []),
    ...tools.flatMap((tool) => labelsOf({ tool })),
    ...targetKinds.flatMap((targetKind) => labelsOf({ targetKind })),
    ...runIds.flatMap((run) => labelsOf({ run })),
  ];
  return { createdAt: Date.parse(createdAt), id: `${id}:${conversationId}`, status, labels, record };
}

/** The names of labels. The label with the fewest turns is likely the first. */
const LABELS = ["run", "status", "issues", "tool", "user", "agent", "targetKind"] as const;

function labelsOf(filter: TurnFilter): string[] {
  return LABELS.flatMap((name) => (filter[name] === undefined ? [] : `${name}:${filter[name]}`));
}

/** The stored turns of `?4`, a JSON list of `turnRow`. `?2` is the conversation, `?3` the number of its newest journal entry. */
const STORED = `json_each(?4) AS item
  CROSS JOIN turns ON turns.tenant = ?1 AND turns.created_at = item.value ->> 'createdAt' AND turns.id = item.value ->> 'id'`;

/** Deletes the labels that a newer state of a turn does not have. */
export const REMOVE_LABELS = `DELETE FROM turn_labels WHERE tenant = ?1 AND (label, created_at, id) IN (
  SELECT old.value, turns.created_at, turns.id FROM ${STORED} CROSS JOIN json_each(turns.labels) AS old
  WHERE turns.conversation_id = ?2 AND turns.seq < ?3
    AND old.value NOT IN (SELECT value FROM json_each(item.value -> 'labels')))`;

/** `?5` is the creation time of the conversation. */
export const PUT_TURNS = `INSERT INTO turns
  (tenant, created_at, id, conversation_id, conversation_at, status, seq, labels, record)
SELECT ?1, value ->> 'createdAt', value ->> 'id', ?2, ?5, value ->> 'status', ?3, value -> 'labels', value -> 'record'
FROM json_each(?4) WHERE TRUE
ON CONFLICT DO UPDATE SET status = excluded.status, seq = excluded.seq, labels = excluded.labels, record = excluded.record
WHERE excluded.seq > turns.seq`;

export const PUT_LABELS = `INSERT OR IGNORE INTO turn_labels (tenant, label, created_at, id)
SELECT ?1, label.value, turns.created_at, turns.id FROM ${STORED} CROSS JOIN json_each(item.value -> 'labels') AS label
WHERE turns.conversation_id = ?2 AND turns.seq = ?3`;

export const REMOVE_TURN_LABELS = `DELETE FROM turn_labels WHERE tenant = ?1 AND (label, created_at, id) IN (
  SELECT label.value, turns.created_at, turns.id FROM turns INDEXED BY turns_by_conversation
  CROSS JOIN json_each(turns.labels) AS label WHERE turns.tenant = ?1 AND turns.conversation_id = ?2)`;

/**
 * Returns the statement of a list of turns, and its values. `member` is the subject of a principal who reads own conversations only. A
 * page has at most `MAX_PAGE_CHARACTERS`, or one turn. `more` is 1 if another row follows.
 */
export function listTurns(
  tenant: string,
  { order, limit, after }: ListRange,
  filter: TurnFilter,
  member: string | undefined,
): Query {
  const { conversation, status, ...others } = filter;
  const labels = labelsOf(status === undefined || status === "completed" ? others : { ...others, status });
  const isAscending = order === "asc";
  const [begin, end] = rangeOf(isAscending, after, filter);
  const values: (string | number)[] = [begin.createdAt, begin.id, end, limit];
  // The tenant is ?1.
  const add = (value: string | number) => `?${values.push(value) + 1}`;
  const comparison = isAscending ? ">" : "<";
  const within = (keys: string) =>
    `(${keys}.created_at, ${keys}.id) ${comparison} (?2, ?3) AND ${keys}.created_at ${isAscending ? "<" : ">="} ?4`;
  const [first, ...further] = labels;
  const ofTurns = "turns AS keys INDEXED BY turns_by_conversation";
  const source =
    member !== undefined
      ? `conversation_users AS member CROSS JOIN ${ofTurns} ON keys.tenant = ?1 AND keys.conversation_id = member.id
  AND keys.conversation_at = member.created_at
WHERE member.tenant = ?1 AND member.user_id = ${add(member)}`
      : conversation !== undefined
        ? `${ofTurns} WHERE keys.tenant = ?1`
        : first !== undefined
          ? `turn_labels AS keys WHERE keys.tenant = ?1 AND keys.label = ${add(first)}`
          : "turns AS keys WHERE keys.tenant = ?1";
  const isByLabel = source.startsWith("turn_labels");
  const having = (isByLabel ? further : labels).map(
    (
      label,
    ) => ` AND EXISTS (SELECT 1 FROM turn_labels AS other WHERE other.tenant = ?1 AND other.label = ${add(label)}
    AND other.created_at = keys.created_at AND other.id = keys.id)`,
  );
  const inConversation = conversation === undefined ? "" : ` AND keys.conversation_id = ${add(conversation)}`;
  const completed =
    status !== "completed"
      ? ""
      : ` AND (SELECT status FROM turns AS own WHERE own.tenant = ?1 AND own.created_at = keys.created_at
    AND own.id = keys.id) = 'completed'`;
  const direction = isAscending ? "ASC" : "DESC";
  const statement = `SELECT created_at, id, record, more FROM (
SELECT turns.created_at, turns.id, turns.record,
  ROW_NUMBER() OVER page AS position, SUM(LENGTH(turns.record)) OVER page AS characters, LEAD(1, 1, 0) OVER page AS more
FROM (
  SELECT keys.created_at, keys.id FROM ${source} AND ${within("keys")}${inConversation}${having.join("")}${completed}
  ORDER BY keys.created_at ${direction}, keys.id ${direction} LIMIT ?5 + 1
) AS found
CROSS JOIN turns ON turns.tenant = ?1 AND turns.created_at = found.created_at AND turns.id = found.id
WINDOW page AS (ORDER BY turns.created_at ${direction}, turns.id ${direction})
) WHERE position = 1 OR (position <= ?5 AND characters <= ${MAX_PAGE_CHARACTERS}) ORDER BY position`;
  return [statement, tenant, ...values];
}

/** Returns the key before the first turn of a list, and the time that limits its last turn. */
function rangeOf(isAscending: boolean, after: ListKey, { since, until }: TurnFilter): [ListKey, number] {
  const { MIN_SAFE_INTEGER: first, MAX_SAFE_INTEGER: last } = Number;
  if (isAscending) {
    const from = since ?? first;
    return [after.createdAt < from ? { createdAt: from, id: "" } : after, until ?? last];
  }
  const to = until ?? last;
  return [after.createdAt >= to ? { createdAt: to, id: "" } : after, since ?? first];
}
