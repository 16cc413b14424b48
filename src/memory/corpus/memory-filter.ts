/** The SQL condition for memories that a reader sees and that match a filter. */
import type { CheckedFilter } from "./schemas.ts";
import { subjectOfVisible, type Visible } from "./visibility.ts";

/** A filter member that is `NULL` does not filter. */
export const MATCHES = `(?1 = 1 OR user_id = ?2 OR conversation_id = ?3 OR (?4 = 1 AND user_id IS NULL AND conversation_id IS NULL))
  AND state IN (SELECT value FROM json_each(?5))
  AND (?6 IS NULL OR type IN (SELECT value FROM json_each(?6)))
  AND (?7 IS NULL OR speaker = ?7)
  AND (?8 IS NULL OR session = ?8)
  AND (?9 IS NULL OR COALESCE(time, created_at) >= ?9)
  AND (?10 IS NULL OR COALESCE(time, created_at) < ?10)
  AND (?11 IS NULL OR user_id = ?11)
  AND (?12 IS NULL OR conversation_id = ?12)
  AND (?13 IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(?13) AS wanted WHERE NOT EXISTS (
      SELECT 1 FROM json_each(memories.metadata) AS member
      WHERE member.key = wanted.key AND member.type IN (wanted.type, IIF(wanted.type = 'real', 'integer', wanted.type))
        AND member.atom = wanted.atom)))`;

/** Returns the values of `MATCHES`, starting at the first. */
export function filterValues(visible: Visible, filter: CheckedFilter): (string | number | null)[] {
  const { all, userId, conversationId, unowned } = subjectOfVisible(visible);
  const { type, speaker, session, from, before, metadata, subject, state = ["current"] } = filter;
  return [
    all,
    userId,
    conversationId,
    unowned,
    JSON.stringify(state),
    type === undefined ? null : JSON.stringify(Array.isArray(type) ? type : [type]),
    speaker ?? null,
    session ?? null,
    from ?? null,
    before ?? null,
    subject?.userId ?? null,
    subject?.conversationId ?? null,
    metadata === undefined ? null : JSON.stringify(metadata),
  ];
}
