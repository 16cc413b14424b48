/** The directory in D1. A damaged row is an error of the database, not of the caller. */

import { toDollars } from "../model/cost.ts";
import type { Clock } from "../ports/clock.ts";
import type { AgentIdentity } from "../protocol/agent-api.ts";
import type { RunSummary } from "../protocol/coordinator-api.ts";
import type { AgentUsage, ConversationSummary, ConversationView } from "../protocol/views.ts";
import {
  type ApprovalsRequest,
  type ListedApproval,
  namesOf,
  type WaitingApproval,
} from "../protocol/waiting-approvals.ts";
import type { RunStatus } from "../protocol/workflow-run.ts";
import { defined } from "../shared/defined.ts";
import { jurisdictionOf } from "../shared/location.ts";
import { encodeCursor, listRange, type Page, type PageOptions, pageOf } from "../shared/page.ts";
import { mayReadAll, type Principal } from "../shared/principal.ts";
import { toIso } from "../shared/time.ts";
import {
  approvalRow,
  keyOf,
  LIST_APPROVALS,
  PUT_APPROVAL_PLACE,
  PUT_APPROVALS,
  PUT_APPROVERS,
  REMOVE_APPROVALS,
  REMOVE_APPROVERS,
} from "./approval-statements.ts";
import type { ConversationUsage, Directory, PublishedRun, RunFilter } from "./directory.ts";
import { D1Queries } from "./queries.ts";
import {
  LIST_AGENTS,
  LIST_CONVERSATIONS,
  LIST_CONVERSATIONS_OF_USER,
  listRuns,
  PUT_AGENT,
  PUT_CONVERSATION,
  PUT_RUN,
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
  metadata: string | null;
  updated_at: number;
  /** 1 if another row follows. */
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

type RunRow = {
  created_at: number;
  id: string;
  started_by: string;
  library: string;
  workflow: string;
  version: number;
  project_id: string;
  status: string;
  ended_at: number | null;
  error_code: string | null;
};

type UsageRow = Omit<AgentUsage, "agentId" | "cost"> & { nanoDollars: number };

/** Cheap to create. */
export class D1Directory implements Directory {
  readonly #queries: D1Queries;

  constructor(database: D1Database, clock?: Pick<Clock, "timer">) {
    this.#queries = new D1Queries(database, clock);
  }

  async putAgent(agent: AgentIdentity): Promise<void> {
    const { tenant, id, createdAt, updatedAt } = agent;
    const [persona, projectIds] = [JSON.stringify(agent.persona), JSON.stringify(agent.projectIds)];
    const [created, updated] = [Date.parse(createdAt), Date.parse(updatedAt)];
    const metadata = agent.metadata === undefined ? null : JSON.stringify(agent.metadata);
    await this.#queries.write([PUT_AGENT, tenant, created, id, persona, projectIds, updated, metadata]);
  }

  async putConversation(tenant: string, conversation: ConversationSummary): Promise<void> {
    const { id, agentId, projectId, title } = conversation;
    const createdAt = Date.parse(conversation.createdAt);
    const participants = JSON.stringify(conversation.participants);
    const users = JSON.stringify(
      conversation.participants.filter(({ type }) => type === "user").map((user) => user.id),
    );
    await this.#queries.write(
      // Reads the row that the next statement replaces, so it comes first.
      [REMOVE_USERS, tenant, createdAt, id, users],
      [PUT_CONVERSATION, tenant, createdAt, id, agentId, projectId, title, participants],
      [PUT_USERS, tenant, createdAt, id, users],
    );
  }

  async putUsage(usage: ConversationUsage): Promise<void> {
    const { tenant, agentId, conversationId, calls, nanoDollars } = usage;
    const { inputTokens, cachedInputTokens, outputTokens } = usage;
    const totals = [calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars];
    await this.#queries.write([PUT_USAGE, tenant, agentId, conversationId, ...totals]);
  }

  async putRun(tenant: string, run: PublishedRun): Promise<void> {
    const { id, workflow, projectId, status, startedBy, endedAt, errorCode = null, seq } = run;
    const { library, id: name, version } = workflow;
    const identity = [tenant, Date.parse(run.createdAt), id, startedBy, library, name, version, projectId];
    const ended = endedAt === undefined ? null : Date.parse(endedAt);
    await this.#queries.write([PUT_RUN, ...identity, status, seq, ended, errorCode]);
  }

  async putApprovals(
    tenant: string,
    place: string,
    seq: number,
    waiting: readonly ListedApproval[],
  ): Promise<void> {
    const values = [tenant, place, seq, JSON.stringify(waiting.map(approvalRow))] as const;
    await this.#queries.write(
      [PUT_APPROVAL_PLACE, tenant, place, seq],
      [REMOVE_APPROVERS, ...values],
      [REMOVE_APPROVALS, ...values],
      [PUT_APPROVALS, ...values],
      [PUT_APPROVERS, ...values],
    );
  }

  async approvals(
    principal: Principal,
    { kind, agent, conversation, run, since = 0, now, ...options }: ApprovalsRequest & { now: number },
  ): Promise<Page<WaitingApproval>> {
    const { order, limit, after } = listRange(options);
    const { tenant, subject } = principal;
    const place = conversation ?? run;
    const listed = kind ?? (conversation !== undefined ? "tool" : run !== undefined ? "gate" : undefined);
    const index = place !== undefined ? "place" : agent !== undefined ? "agent" : "all";
    const rows = await this.#queries.read<{ request: string }>(
      LIST_APPROVALS[index][order],
      ...[tenant, keyOf(after), limit + 1, JSON.stringify(namesOf(principal)), subject, now, since],
      ...[listed, place ?? agent, agent, conversation, run].map((value) => value ?? null),
    );
    // SAFETY: only putApprovals writes this column, from a value of this type.
    const requests = rows.map(({ request }) => JSON.parse(request) as WaitingApproval);
    return pageOf(
      requests,
      limit,
      (request) => request,
      ({ operationId: id, requestedAt }) => encodeCursor({ createdAt: Date.parse(requestedAt), id }),
    );
  }

  async usage(tenant: string, agentId: string): Promise<AgentUsage> {
    // SAFETY: an aggregate has exactly one row.
    const [row] = (await this.#queries.read(SUM_USAGE, tenant, agentId)) as [UsageRow];
    const { nanoDollars, ...totals } = row;
    return { agentId, ...totals, cost: toDollars(nanoDollars) };
  }

  async agents(tenant: string, options: PageOptions = {}): Promise<Page<AgentIdentity>> {
    const { order, limit, after } = listRange(options);
    const statement = LIST_AGENTS[order];
    const rows = await this.#queries.read<AgentRow>(statement, tenant, after.createdAt, after.id, limit);
    const last = rows.at(-1);
    return { items: rows.map(toAgent), ...(last?.more === 1 ? { nextCursor: cursorOf(last) } : {}) };
  }

  async conversations(principal: Principal, options: PageOptions = {}): Promise<Page<ConversationSummary>> {
    const { order, limit, after } = listRange(options);
    const { tenant, subject } = principal;
    const [statements, users] = mayReadAll(principal)
      ? [LIST_CONVERSATIONS, []]
      : [LIST_CONVERSATIONS_OF_USER, [subject]];
    const values = [tenant, after.createdAt, after.id, limit + 1, ...users];
    const rows = await this.#queries.read<ConversationRow>(statements[order], ...values);
    return pageOf(rows, limit, toConversation, cursorOf);
  }

  async runs(principal: Principal, options: PageOptions & RunFilter = {}): Promise<Page<RunSummary>> {
    const { order, limit, after } = listRange(options);
    const { tenant, subject } = principal;
    const { status, workflow } = options;
    const starter = mayReadAll(principal) ? undefined : subject;
    const [statement, filters] = listRuns(order, defined({ starter, status, workflow }));
    const values = [tenant, after.createdAt, after.id, limit + 1, ...filters];
    const rows = await this.#queries.read<RunRow>(statement, ...values);
    return pageOf(rows, limit, toRun, cursorOf);
  }
}

function cursorOf(row: { created_at: number; id: string }): string {
  return encodeCursor({ createdAt: row.created_at, id: row.id });
}

function toAgent(row: AgentRow): AgentIdentity {
  return {
    id: row.id,
    tenant: row.tenant,
    // SAFETY: only putAgent writes these columns, from values of these types.
    persona: JSON.parse(row.persona) as AgentIdentity["persona"],
    projectIds: JSON.parse(row.project_ids) as string[],
    ...defined({
      metadata: row.metadata === null ? undefined : (JSON.parse(row.metadata) as AgentIdentity["metadata"]),
      jurisdiction: jurisdictionOf(row.id),
    }),
    createdAt: toIso(row.created_at),
    updatedAt: toIso(row.updated_at),
  };
}

function toConversation(row: ConversationRow): ConversationSummary {
  return {
    id: row.id,
    title: row.title,
    agentId: row.agent_id,
    projectId: row.project_id,
    ...defined({ jurisdiction: jurisdictionOf(row.id) }),
    // SAFETY: only putConversation writes this column, from a value of this type.
    participants: JSON.parse(row.participants) as ConversationView["participants"],
    createdAt: toIso(row.created_at),
  };
}

function toRun(row: RunRow): RunSummary {
  return {
    id: row.id,
    workflow: { library: row.library, id: row.workflow, version: row.version },
    projectId: row.project_id,
    // SAFETY: only putRun writes this column, from a value of this type.
    status: row.status as RunStatus,
    startedBy: row.started_by,
    createdAt: toIso(row.created_at),
    ...defined({
      endedAt: row.ended_at === null ? undefined : toIso(row.ended_at),
      errorCode: row.error_code ?? undefined,
    }),
  };
}
