/** The statements that find memories for upkeep. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { MemoryScope } from "../../protocol/memory.ts";

const EXPIRED = `SELECT n FROM memories WHERE type = ?1 AND updated_at <= ?2 AND hidden < 2 AND (?3 = 1 OR state <> 'archived')
  ORDER BY updated_at, n LIMIT ?4`;
const OLDEST =
  "SELECT MIN(updated_at) AS at FROM memories WHERE type = ?1 AND hidden < 2 AND (?2 = 1 OR state <> 'archived')";

/**
 * The conversation that memories are grouped by: in the scope of conversations, and without a user, it is part of the subject. So no group mixes
 * memories that different readers see.
 */
const CONVERSATION = "CASE WHEN ?1 = 'conversation' OR user_id IS NULL THEN conversation_id END";
const ELIGIBLE = `state = 'current' AND hidden = 0 AND long = 0 AND updated_at <= ?2`;
const NEXT_GROUP = `SELECT user_id, ${CONVERSATION} AS conversation, type, MIN(n) AS first FROM memories
  WHERE ${ELIGIBLE} AND type IN (SELECT value FROM json_each(?3))
  GROUP BY user_id, conversation, type
  HAVING COUNT(*) >= ?4 AND MIN(n) > ?5 AND MAX(updated_at) > ?6
  ORDER BY first LIMIT 1`;
const MEMBERS = `SELECT n, LENGTH(content) AS length FROM memories
  WHERE ${ELIGIBLE} AND user_id IS ?3 AND ${CONVERSATION} IS ?4 AND type = ?5
  ORDER BY COALESCE(time, created_at), n LIMIT ?6`;

const MARKED = "SELECT n FROM memory_rederive ORDER BY n";
const UNMARK = "DELETE FROM memory_rederive WHERE n = ?";

/** Memories of one subject and one type. */
export interface MemoryGroup {
  userId: string | null;
  /** The conversation, where the group has those of one alone. */
  conversation: string | null;
  type: string;
  /** The number of its first memory. */
  first: number;
}

/** The memories that a consolidation may join. */
export interface GroupQuery {
  scope: MemoryScope;
  types: readonly string[];
  minimum: number;
  /** Memories that nothing has changed since then, in milliseconds. */
  until: number;
  /** Groups whose first memory has a higher number. */
  after: number;
  /** Groups of which something has changed since then. */
  changedSince: number;
}

type GroupRow = { user_id: string | null; conversation: string | null; type: string; first: number };

export class UpkeepRows {
  constructor(private readonly database: SqlDatabase) {}

  /** Returns the numbers of memories of a type that nothing has changed since `until`, the oldest first. */
  expired(type: string, until: number, hasArchived: boolean, limit: number): number[] {
    return this.database
      .all<{ n: number }>(EXPIRED, type, until, hasArchived ? 1 : 0, limit)
      .map(({ n }) => n);
  }

  /** Returns the time of the oldest change of a type's memories; `null` where there are none. */
  oldest(type: string, hasArchived: boolean): number | null {
    return this.database.all<{ at: number | null }>(OLDEST, type, hasArchived ? 1 : 0)[0]?.at ?? null;
  }

  nextGroup({ scope, types, minimum, until, after, changedSince }: GroupQuery): MemoryGroup | undefined {
    const values = [scope, until, JSON.stringify(types), minimum, after, changedSince];
    const [row] = this.database.all<GroupRow>(NEXT_GROUP, ...values);
    if (row === undefined) return undefined;
    const { user_id, conversation, type, first } = row;
    return { userId: user_id, conversation, type, first };
  }

  /** Returns the numbers of a group's memories, the oldest first, with their lengths in characters. */
  members(
    { userId, conversation, type }: MemoryGroup,
    { scope, until }: Pick<GroupQuery, "scope" | "until">,
    limit: number,
  ): { n: number; length: number }[] {
    return this.database.all(MEMBERS, scope, until, userId, conversation, type, limit);
  }

  /** Reports whether a memory is to be derived again. Each change of the memory asks. */
  hasMarked(): boolean {
    return this.database.all(`${MARKED} LIMIT 1`).length > 0;
  }

  /** Returns the numbers of the memories that are to be derived again. */
  marked(): number[] {
    return this.database.all<{ n: number }>(MARKED).map(({ n }) => n);
  }

  unmark(n: number): void {
    this.database.run(UNMARK, n);
  }
}
