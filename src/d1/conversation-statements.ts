/**
 * The SQL of conversations in lists.
 *
 * The activity of a conversation is in the row of its published turns, which each put of turns writes. A mark is the row of a person and a
 * conversation: pinned, archived, or both. A turn that began after the archiving cancels it, without a write.
 */
import type { ConversationListOptions } from "../protocol/conversation-api.ts";
import type { ListRange } from "../shared/page.ts";
import type { Query } from "./queries.ts";

export const PUT_CONVERSATION = `INSERT INTO conversations
  (tenant, created_at, id, agent_id, project_id, title, participants, seq, forked_from, channel)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT DO UPDATE SET agent_id = excluded.agent_id, project_id = excluded.project_id,
  title = excluded.title, participants = excluded.participants, seq = excluded.seq
WHERE excluded.seq >= conversations.seq`;

/** Deletes the users of the stored conversation who are not in `?4`, a JSON list. `?5` is the number of the newest journal entry: a late put changes nothing. */
export const REMOVE_USERS = `DELETE FROM conversation_users
WHERE tenant = ?1 AND created_at = ?2 AND id = ?3
  AND user_id IN (
    SELECT participant.value ->> 'id' FROM conversations, json_each(conversations.participants) AS participant
    WHERE tenant = ?1 AND created_at = ?2 AND conversations.id = ?3 AND seq <= ?5 AND participant.value ->> 'type' = 'user')
  AND user_id NOT IN (SELECT value FROM json_each(?4))`;

export const PUT_USERS = `INSERT OR IGNORE INTO conversation_users (tenant, user_id, created_at, id)
SELECT ?1, value, ?2, ?3 FROM json_each(?4)
WHERE ?5 >= (SELECT seq FROM conversations WHERE tenant = ?1 AND created_at = ?2 AND id = ?3)`;

/** Lists a conversation by its creation until its first turn is published. */
export const PUT_CREATED = `INSERT OR IGNORE INTO published_turns (tenant, conversation_id, seq, created_at, active_at)
VALUES (?1, ?3, 0, ?2, ?2)`;

/** Notes the published place in the journal, and the newest activity. A late put cannot lower them. `?5` is `NULL` for an unlisted conversation. */
export const PUT_PUBLISHED = `INSERT INTO published_turns (tenant, conversation_id, seq, created_at, active_at)
VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT DO UPDATE SET seq = excluded.seq, active_at = MAX(active_at, excluded.active_at)
WHERE excluded.seq > published_turns.seq`;

export const GET_PUBLISHED = "SELECT seq FROM published_turns WHERE tenant = ?1 AND conversation_id = ?2";

/** `?2` is a JSON list of ids. Reads two rows for each conversation. */
export const GET_TITLES = `SELECT conversations.id, title FROM json_each(?2) AS wanted
CROSS JOIN published_turns AS published ON published.tenant = ?1 AND published.conversation_id = wanted.value
CROSS JOIN conversations ON conversations.tenant = ?1 AND conversations.created_at = published.created_at
  AND conversations.id = published.conversation_id
WHERE title IS NOT NULL`;

/** `?2` is the person, `?5` the time. Returns no row if lists do not have the conversation. */
export const PUT_MARK = { pinned: putMark("pinned_at"), archived: putMark("archived_at") };

function putMark(column: string): string {
  return `INSERT INTO conversation_marks (tenant, user_id, created_at, id, ${column})
SELECT ?1, ?2, created_at, id, ?5 FROM conversations WHERE tenant = ?1 AND created_at = ?3 AND id = ?4
ON CONFLICT DO UPDATE SET ${column} = excluded.${column} RETURNING id`;
}

export const REMOVE_MARK = { pinned: removeMark("pinned_at"), archived: removeMark("archived_at") };

function removeMark(column: string): string {
  return `UPDATE conversation_marks SET ${column} = NULL
WHERE tenant = ?1 AND user_id = ?2 AND created_at = ?3 AND id = ?4`;
}

export const REMOVE_UNMARKED = `DELETE FROM conversation_marks
WHERE tenant = ?1 AND user_id = ?2 AND created_at = ?3 AND id = ?4 AND pinned_at IS NULL AND archived_at IS NULL`;

/** Conversations of a person that take part in a list by activity: the newest by creation. Each page sorts them. */
const MAX_ACTIVE = 1_000;

interface Reader {
  tenant: string;
  subject: string;
  /** Reads own conversations only. */
  isMember: boolean;
}

/** Returns the statement of a list of conversations, and its values. A row has the members of `ConversationRow`. */
export function listConversations(
  { tenant, subject, isMember }: Reader,
  { order, limit, after }: ListRange,
  { sort, pinned, archived = false }: ConversationListOptions,
): Query {
  const isByActivity = sort === "activity";
  const isMarked = pinned === true || archived;
  const newestOf = (table: string) =>
    isByActivity
      ? `(SELECT * FROM ${table} WHERE tenant = ?1 AND user_id = ?5
    ORDER BY created_at DESC, id DESC LIMIT ${MAX_ACTIVE}) AS keys`
      : `${table} AS keys`;
  const [keys, id] = isMarked
    ? ([newestOf("conversation_marks"), "keys.id"] as const)
    : isMember
      ? ([newestOf("conversation_users"), "keys.id"] as const)
      : isByActivity
        ? (["published_turns AS keys INDEXED BY published_by_activity", "keys.conversation_id"] as const)
        : (["conversations AS keys", "keys.id"] as const);
  const isOwn = isMarked || isMember;
  const at = !isByActivity
    ? "keys.created_at"
    : isOwn
      ? "IFNULL(active_at, keys.created_at)"
      : "keys.active_at";
  const activity =
    isByActivity && isOwn
      ? " LEFT JOIN published_turns AS activity ON activity.tenant = ?1 AND activity.conversation_id = keys.id"
      : "";
  const mark = isMarked ? "keys" : "mark";
  const marks = isMarked
    ? ""
    : ` LEFT JOIN conversation_marks AS mark ON mark.tenant = ?1 AND mark.user_id = ?5
    AND mark.created_at = keys.created_at AND mark.id = ${id}`;
  const isArchived = `(${mark}.archived_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM turns INDEXED BY turns_by_conversation
    WHERE turns.tenant = ?1 AND turns.conversation_id = ${id} AND turns.created_at > ${mark}.archived_at))`;
  const conditions = [
    "keys.tenant = ?1",
    `(${at}, ${id}) ${order === "asc" ? ">" : "<"} (?2, ?3)`,
    archived ? isArchived : `NOT ${isArchived}`,
    ...(isByActivity && !isOwn ? ["keys.active_at IS NOT NULL"] : []),
    ...(isOwn ? ["keys.user_id = ?5"] : []),
    ...(pinned === undefined ? [] : [`${mark}.pinned_at IS ${pinned ? "NOT " : ""}NULL`]),
    ...(isMarked && isMember
      ? [
          `EXISTS (SELECT 1 FROM conversation_users AS member WHERE member.tenant = ?1 AND member.user_id = ?5
    AND member.created_at = keys.created_at AND member.id = keys.id)`,
        ]
      : []),
    // A put of turns may arrive before the put of its conversation.
    `EXISTS (SELECT 1 FROM conversations AS own WHERE own.tenant = ?1 AND own.created_at = keys.created_at AND own.id = ${id})`,
  ];
  const direction = order === "asc" ? "ASC" : "DESC";
  const statement = `SELECT listed.*, found.at, IFNULL(published.active_at, listed.created_at) AS active_at,
  mark.pinned_at IS NOT NULL AS pinned
FROM (
  SELECT keys.created_at, ${id} AS id, ${at} AS at FROM ${keys}${activity}${marks}
  WHERE ${conditions.join("\n    AND ")}
  ORDER BY at ${direction}, ${id} ${direction} LIMIT ?4
) AS found
CROSS JOIN conversations AS listed ON listed.tenant = ?1 AND listed.created_at = found.created_at AND listed.id = found.id
LEFT JOIN published_turns AS published ON published.tenant = ?1 AND published.conversation_id = found.id
LEFT JOIN conversation_marks AS mark ON mark.tenant = ?1 AND mark.user_id = ?5
  AND mark.created_at = found.created_at AND mark.id = found.id
ORDER BY found.at ${direction}, found.id ${direction}`;
  return [statement, tenant, after.createdAt, after.id, limit + 1, subject];
}
