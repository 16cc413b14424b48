/** The records of memories in D1, for queries from outside. The agents own the memories and write these rows. */
import type { MemoryRecord, MemoryRecords } from "../memory/corpus/copies.ts";
import type { Clock } from "../ports/clock.ts";
import { D1Queries, type Databases, type Query } from "./queries.ts";

const PUT = `INSERT INTO memories
  (tenant, agent_id, id, type, content, content_ref, significance, metadata, key, speaker, session, sequence, time, user_id,
    conversation_id, state, tainted, valid_from, valid_to, version, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)
ON CONFLICT DO UPDATE SET type = excluded.type, content = excluded.content, content_ref = excluded.content_ref,
  significance = excluded.significance, metadata = excluded.metadata, key = excluded.key, speaker = excluded.speaker,
  session = excluded.session, sequence = excluded.sequence, time = excluded.time, user_id = excluded.user_id,
  conversation_id = excluded.conversation_id, state = excluded.state, tainted = excluded.tainted,
  valid_from = excluded.valid_from, valid_to = excluded.valid_to, version = excluded.version, updated_at = excluded.updated_at
WHERE excluded.version >= memories.version`;
const REMOVE = `DELETE FROM memories
WHERE tenant = ?1 AND agent_id = ?2 AND id IN (SELECT value FROM json_each(?3))`;

export class D1Memories implements MemoryRecords {
  readonly #queries: D1Queries;

  constructor(databases: Databases, clock?: Pick<Clock, "timer">) {
    this.#queries = new D1Queries(databases, clock);
  }

  async write(
    { tenant, agentId }: { tenant: string; agentId: string },
    records: MemoryRecord[],
    deleted: string[],
  ): Promise<void> {
    const removals: Query[] =
      deleted.length === 0 ? [] : [[REMOVE, tenant, agentId, JSON.stringify(deleted)]];
    const puts = records.map((record): Query => [PUT, record.tenant, ...valuesOf(record)]);
    const [first, ...others] = [...removals, ...puts];
    if (first !== undefined) await this.#queries.write(first, ...others);
  }
}

function valuesOf(record: MemoryRecord): (string | number | null)[] {
  return [
    record.agentId,
    record.id,
    record.type,
    record.content,
    record.ref,
    record.significance,
    JSON.stringify(record.metadata),
    record.key,
    record.speaker,
    record.session,
    record.sequence,
    record.time,
    record.userId,
    record.conversationId,
    record.state,
    record.tainted ? 1 : 0,
    record.validFrom,
    record.validTo,
    record.version,
    record.createdAt,
    record.updatedAt,
  ];
}
