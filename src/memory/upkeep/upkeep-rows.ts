/** SQL statements that select memories for upkeep. */
import type { SqlDatabase } from "../../ports/sql-database.ts";
import type { MemoryScope } from "../../protocol/memory.ts";

const EXPIRED = `SELECT n FROM memories WHERE type = ?1 AND updated_at <= ?2 AND hidden < 2 AND (?3 = 1 OR state <> 'archived')
  ORDER BY updated_at, n LIMIT ?4`;
const OLDEST =
  "SELECT MIN(updated_at) AS at FROM memories WHERE type = ?1 AND hidden < 2 AND (?2 = 1 OR state <> 'archived')";

/**
 * The conversation by which memories are grouped. It is part of the subject if the scope is `conversation` or the memory has no user. So a
 * group never mixes memories of different readers.
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

export interface MemoryGroup {
  userId: string | null;
  /** Set if all memories of the group belong to one conversation. */
  conversation: string | null;
  type: string;
  first: number;
}

/** The memories that a consolidation may combine. */
export interface GroupQuery {
  scope: MemoryScope;
  types: readonly string[];
  minimum: number;
  /** Selects memories that have not changed since this time, in milliseconds. */
  until: number;
  /** Selects groups with a higher `first`. */
  after: number;
  /** Selects groups that have changed since this time. */
  changedSince: number;
}

type GroupRow = { user_id: string | null; conversation: string | null; type: string; first: number };

export class UpkeepRows {
  constructor(private readonly database: SqlDatabase) {}

  /** Returns the numbers of the memories of a type that have not changed since `until`, oldest first. */
  expired(type: string, until: number, hasArchived: boolean, limit: number): number[] {
    return this.database
      .all<{ n: number }>(EXPIRED, type, until, hasArchived ? 1 : 0, limit)
      .map(({ n }) => n);
  }

  /** Returns the time of the oldest change of a type's memories, or `null`. */
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

  /** Returns the numbers of a group's memories, oldest first, with their lengths in characters. */
  members(
    { userId, conversation, type }: MemoryGroup,
    { scope, until }: Pick<GroupQuery, "scope" | "until">,
    limit: number,
  ): { n: number; length: number }[] {
    return this.database.all(MEMBERS, scope, until, userId, conversation, type, limit);
  }

  /** Reports whether a memory waits for rederivation. Runs on each change of the memory. */
  hasMarked(): boolean {
    return this.database.all(`${MARKED} LIMIT 1`).length > 0;
  }

  marked(): number[] {
    return this.database.all<{ n: number }>(MARKED).map(({ n }) => n);
  }

  unmark(n: number): void {
    this.database.run(UNMARK, n);
  }
}
