/** The directory in D1. Rows that a foreign hand has damaged are an error of the store, not of the caller. */

import { toDollars } from "../model/cost.ts";
import type { Clock } from "../ports/clock.ts";
import { systemClock } from "../ports/system.ts";
import type { AgentIdentity } from "../protocol/agent-api.ts";
import type { AgentUsage, ConversationSummary, ConversationView } from "../protocol/frames.ts";
import { encodeCursor, listRange, pageOf } from "../shared/cursor.ts";
import { DramatisError } from "../shared/errors.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import { mayReadAll, type Principal } from "../shared/principal.ts";
import type { ConversationUsage, Directory } from "./directory.ts";
import { inTime } from "./in-time.ts";
import { migrate } from "./migrate.ts";
import {
  LIST_AGENTS,
  LIST_CONVERSATIONS,
  LIST_CONVERSATIONS_OF_USER,
  PUT_AGENT,
  PUT_CONVERSATION,
  PUT_USAGE,
  PUT_USERS,
  REMOVE_USERS,
  SUM_USAGE,
} from "./statements.ts";

type AgentRow = {
  tenant: string;
  created_at: number;
  id: string;
  persona: string;
  project_ids: string;
  updated_at: number;
  /** 1 where a further row exists. */
  more: number;
};

type ConversationRow = {
  created_at: number;
  id: string;
  agent_id: string;
  project_id: string;
  title: string | null;
  participants: string;
};

type UsageRow = {
  conversations: number;
  calls: number;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  nano_dollars: number;
};

/** Cheap to make; the database is brought to its schema by the first use in an isolate. */
export class D1Directory implements Directory {
  readonly #database: D1Database;

  readonly #clock: Pick<Clock, "timer">;

  constructor(database: D1Database, clock: Pick<Clock, "timer"> = systemClock) {
    this.#database = database;
    this.#clock = clock;
  }

  async putAgent(agent: AgentIdentity): Promise<void> {
    const { tenant, id, persona, projectIds, createdAt, updatedAt } = agent;
    await migrate(this.#database);
    await this.#database
      .prepare(PUT_AGENT)
      .bind(
        tenant,
        Date.parse(createdAt),
        id,
        JSON.stringify(persona),
        JSON.stringify(projectIds),
        Date.parse(updatedAt),
      )
      .run();
  }

  async putConversation(tenant: string, conversation: ConversationSummary): Promise<void> {
    const { id, agentId, projectId, title, participants } = conversation;
    const createdAt = Date.parse(conversation.createdAt);
    const users = JSON.stringify(participants.filter(({ type }) => type === "user").map((user) => user.id));
    const database = this.#database;
    await migrate(database);
    await database.batch([
      // Reads the row that the next statement replaces, so it comes first.
      database.prepare(REMOVE_USERS).bind(tenant, createdAt, id, users),
      database
        .prepare(PUT_CONVERSATION)
        .bind(tenant, createdAt, id, agentId, projectId, title, JSON.stringify(participants)),
      database.prepare(PUT_USERS).bind(tenant, createdAt, id, users),
    ]);
  }

  async putUsage(usage: ConversationUsage): Promise<void> {
    const { tenant, agentId, conversationId, calls, nanoDollars } = usage;
    const { inputTokens, cachedInputTokens, outputTokens } = usage;
    await migrate(this.#database);
    await this.#database
      .prepare(PUT_USAGE)
      .bind(tenant, agentId, conversationId, calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars)
      .run();
  }

  async usage(tenant: string, agentId: string): Promise<AgentUsage> {
    const [row] = await this.#read<UsageRow>(SUM_USAGE, [tenant, agentId]);
    const { conversations = 0, calls = 0, input_tokens = 0, cached_input_tokens = 0 } = row ?? {};
    return {
      agentId,
      conversations,
      calls,
      inputTokens: input_tokens,
      cachedInputTokens: cached_input_tokens,
      outputTokens: row?.output_tokens ?? 0,
      cost: toDollars(row?.nano_dollars ?? 0),
    };
  }

  async agents(tenant: string, options: PageOptions = {}): Promise<Page<AgentIdentity>> {
    const { order, limit, after } = listRange(options);
    const rows = await this.#read<AgentRow>(LIST_AGENTS[order], [tenant, after.createdAt, after.id, limit]);
    const last = rows.at(-1);
    return {
      items: rows.map(toAgent),
      ...(last?.more === 1 ? { nextCursor: encodeCursor({ createdAt: last.created_at, id: last.id }) } : {}),
    };
  }

  async conversations(principal: Principal, options: PageOptions = {}): Promise<Page<ConversationSummary>> {
    const { order, limit, after } = listRange(options);
    const { tenant, subject } = principal;
    const values = [tenant, after.createdAt, after.id, limit + 1];
    const rows = mayReadAll(principal)
      ? await this.#read<ConversationRow>(LIST_CONVERSATIONS[order], values)
      : await this.#read<ConversationRow>(LIST_CONVERSATIONS_OF_USER[order], [...values, subject]);
    const found = rows.map((row) => ({
      key: { createdAt: row.created_at, id: row.id },
      item: toConversation(row),
    }));
    return pageOf(found, limit);
  }

  async #read<Row>(statement: string, values: (string | number)[]): Promise<Row[]> {
    try {
      const { results } = await inTime(this.#clock, async () => {
        await migrate(this.#database);
        return this.#database
          .prepare(statement)
          .bind(...values)
          .all<Row>();
      });
      return results;
    } catch (cause) {
      console.error("The directory cannot be read:", cause);
      throw new DramatisError("UNAVAILABLE", "Lists cannot be read right now. Try again in a moment.", {
        retriable: true,
        cause,
      });
    }
  }
}

function toAgent(row: AgentRow): AgentIdentity {
  return {
    id: row.id,
    tenant: row.tenant,
    // SAFETY: only putAgent writes these columns, from values of these types.
    persona: JSON.parse(row.persona) as AgentIdentity["persona"],
    projectIds: JSON.parse(row.project_ids) as string[],
    createdAt: new Date(row.created_at).toISOString(),
    updatedAt: new Date(row.updated_at).toISOString(),
  };
}

function toConversation(row: ConversationRow): ConversationSummary {
  return {
    id: row.id,
    title: row.title,
    agentId: row.agent_id,
    projectId: row.project_id,
    // SAFETY: only putConversation writes this column, from a value of this type.
    participants: JSON.parse(row.participants) as ConversationView["participants"],
    createdAt: new Date(row.created_at).toISOString(),
  };
}
