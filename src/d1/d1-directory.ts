/** The directory in D1. A damaged row is an error of the database, not of the caller. */
import { toDollars } from "../model/cost.ts";
import type { Clock } from "../ports/clock.ts";
import type { AgentIdentity } from "../protocol/agent-api.ts";
import { namesOf } from "../protocol/approval.ts";
import type { ConversationListOptions } from "../protocol/conversation-api.ts";
import type { ConversationSummary, ConversationView } from "../protocol/conversation-schemas.ts";
import type { RunSummary } from "../protocol/run-schemas.ts";
import type { ListedTasks, TasksRequest, TurnRecord, TurnsRequest } from "../protocol/turn-records.ts";
import type { AgentUsage } from "../protocol/usage-schemas.ts";
import type { PublishedConversation } from "../protocol/views.ts";
import type { ApprovalsRequest, ListedApproval, WaitingApproval } from "../protocol/waiting-approvals.ts";
import { defined } from "../shared/defined.ts";
import { conflict } from "../shared/errors.ts";
import { jurisdictionOf } from "../shared/location.ts";
import {
  encodeCursor,
  listRange,
  MAX_PAGE_BYTES,
  type Page,
  type PageOptions,
  pageOf,
} from "../shared/page.ts";
import { mayReadAll, type Principal } from "../shared/principal.ts";
import { toIso } from "../shared/time.ts";
import {
  approvalRow,
  GET_APPROVALS,
  keyOf,
  LIST_APPROVALS,
  ofKey,
  PUT_APPROVAL_PLACE,
  PUT_APPROVALS,
  PUT_APPROVERS,
  REMOVE_APPROVALS,
  REMOVE_APPROVERS,
} from "./approval-statements.ts";
import {
  GET_PUBLISHED,
  GET_TITLES,
  listConversations,
  PUT_CONVERSATION,
  PUT_CREATED,
  PUT_MARK,
  PUT_PUBLISHED,
  PUT_USERS,
  REMOVE_MARK,
  REMOVE_UNMARKED,
  REMOVE_USERS,
} from "./conversation-statements.ts";
import type {
  ConversationMark,
  ConversationUsage,
  Directory,
  PublishedRun,
  PublishedTurns,
  RunFilter,
  TurnsOwner,
} from "./directory.ts";
import { D1Queries, type Databases } from "./queries.ts";
import { ACTIVE_RUNS, listRuns, PUT_RUN, type RunRow, toRun } from "./run-statements.ts";
import { LIST_AGENTS, PUT_AGENT, PUT_USAGE, SUM_USAGE } from "./statements.ts";
import { countTasks, listTasks, type TaskRow, tasksOf } from "./task-statements.ts";
import { listTurns, PUT_LABELS, PUT_TURNS, REMOVE_LABELS, turnRow } from "./turn-statements.ts";

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
  forked_from: string | null;
  channel: string | null;
  active_at: number;
  /** The key of the list: the creation or the activity. */
  at: number;
  pinned: 0 | 1;
};

type TurnRow = {
  created_at: number;
  id: string;
  record: string;
  /** 1 if another row follows. */
  more: number;
};

type UsageRow = Omit<AgentUsage, "agentId" | "cost"> & { nanoDollars: number };

/** The latest time of a date, in milliseconds since the epoch. */
const MAX_TIME = 8.64e15;

/** Cheap to create. */
export class D1Directory implements Directory {
  readonly #queries: D1Queries;

  constructor(databases: Databases, clock?: Pick<Clock, "timer">) {
    this.#queries = new D1Queries(databases, clock);
  }

  async putAgent(agent: AgentIdentity): Promise<void> {
    const { tenant, id, createdAt, updatedAt } = agent;
    const [persona, projectIds] = [JSON.stringify(agent.persona), JSON.stringify(agent.projectIds)];
    const [created, updated] = [Date.parse(createdAt), Date.parse(updatedAt)];
    const metadata = agent.metadata === undefined ? null : JSON.stringify(agent.metadata);
    await this.#queries.write([PUT_AGENT, tenant, created, id, persona, projectIds, updated, metadata]);
  }

  async putConversation(tenant: string, conversation: PublishedConversation, seq: number): Promise<void> {
    const { id, agentId, projectId, title, forkedFrom, channel = null } = conversation;
    const createdAt = Date.parse(conversation.createdAt);
    const participants = JSON.stringify(conversation.participants);
    const users = JSON.stringify(
      conversation.participants.filter(({ type }) => type === "user").map((user) => user.id),
    );
    const origin = forkedFrom === undefined ? null : JSON.stringify(forkedFrom);
    await this.#queries.write(
      // Reads the row that the next statement replaces, so it comes first.
      [REMOVE_USERS, tenant, createdAt, id, users, seq],
      [
        PUT_CONVERSATION,
        tenant,
        createdAt,
        id,
        agentId,
        projectId,
        title,
        participants,
        seq,
        origin,
        channel,
      ],
      [PUT_USERS, tenant, createdAt, id, users, seq],
      [PUT_CREATED, tenant, createdAt, id],
    );
  }

  async putUsage(usage: ConversationUsage): Promise<void> {
    const { tenant, agentId, conversationId, calls, nanoDollars } = usage;
    const { inputTokens, cachedInputTokens, outputTokens } = usage;
    const totals = [calls, inputTokens, cachedInputTokens, outputTokens, nanoDollars];
    await this.#queries.write([PUT_USAGE, tenant, agentId, conversationId, ...totals]);
  }

  async putRun(tenant: string, run: PublishedRun): Promise<void> {
    const { id, workflow, projectId, status, startedBy, endedAt, errorCode = null, seq, name: label } = run;
    const { library, id: name, version } = workflow;
    const identity = [Date.parse(run.createdAt), id, startedBy, library, name, version, projectId];
    const ended = endedAt === undefined ? null : Date.parse(endedAt);
    const texts = [label ?? null, label?.toLowerCase() ?? null, run.inputPreview ?? null];
    await this.#queries.write([PUT_RUN, tenant, ...identity, status, seq, ended, errorCode, ...texts]);
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

  async putTurns(
    tenant: string,
    conversation: TurnsOwner,
    { turns, seq, upTo, activeAt }: PublishedTurns,
  ): Promise<void> {
    const { id, createdAt } = conversation;
    const values = [tenant, id, seq, JSON.stringify(turns.map(turnRow))] as const;
    await this.#queries.write(
      // Reads the rows that the next statement replaces, so it comes first.
      [REMOVE_LABELS, ...values],
      [PUT_TURNS, ...values, createdAt],
      [PUT_LABELS, ...values],
      [PUT_PUBLISHED, tenant, id, upTo, createdAt, activeAt ?? null],
    );
  }

  async publishedTurns(tenant: string, conversationId: string): Promise<number> {
    const rows = await this.#queries.read<{ seq: number }>(GET_PUBLISHED, tenant, conversationId);
    return rows[0]?.seq ?? 0;
  }

  async turns(principal: Principal, options: TurnsRequest = {}): Promise<Page<TurnRecord>> {
    const { tenant, subject } = principal;
    const member = mayReadAll(principal) ? undefined : subject;
    const query = listTurns(tenant, listRange(options), options, member);
    const rows = await this.#queries.read<TurnRow>(...query);
    const last = rows.at(-1);
    // SAFETY: only putTurns writes this column, from a value of this type.
    const items = rows.map(({ record }) => JSON.parse(record) as TurnRecord);
    return { items, ...(last?.more === 1 ? { nextCursor: cursorOf(last) } : {}) };
  }

  async tasks(
    principal: Principal,
    { agentId, limit, cursor, ...filter }: TasksRequest,
  ): Promise<ListedTasks> {
    const owner = { ...principal, agentId };
    const after = cursor === undefined ? undefined : listRange({ cursor }).after;
    const key = after && { at: toIso(Math.max(0, Math.min(after.createdAt, MAX_TIME))), id: after.id };
    const [rows, [counted]] = await Promise.all([
      this.#queries.read<TaskRow>(...listTasks(owner, filter, { after: key, limit: limit + 1 })),
      this.#queries.read<{ total: number }>(...countTasks(owner, filter)),
    ]);
    return { ...tasksOf(rows, limit), total: counted?.total ?? 0 };
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
    const rows = await this.#queries.read<{ key: string; bytes: number; request: string | null }>(
      LIST_APPROVALS[index][order],
      tenant,
      ...[keyOf(after), limit + 1, JSON.stringify(namesOf(principal)), subject, now, since],
      ...[listed, place ?? agent, agent, conversation, run].map((value) => value ?? null),
    );
    let count = 0;
    for (let bytes = 0; count < Math.min(limit, rows.length) && bytes < MAX_PAGE_BYTES; count++)
      bytes += rows[count]?.bytes ?? 0;
    const page = rows.slice(0, count);
    const large = await this.#largeApprovals(
      tenant,
      page.filter(({ request }) => request === null).map(({ key }) => key),
    );
    const last = rows.length > count ? page.at(-1) : undefined;
    return {
      // SAFETY: only putApprovals writes this column, from a value of this type. A large request may have been answered since.
      items: page.flatMap(
        ({ key, request }) => JSON.parse(request ?? large.get(key) ?? "[]") as WaitingApproval,
      ),
      ...defined({ nextCursor: last && encodeCursor(ofKey(last.key)) }),
    };
  }

  async #largeApprovals(tenant: string, keys: readonly string[]): Promise<Map<string, string>> {
    if (keys.length === 0) return new Map();
    const rows = await this.#queries.read<{ key: string; request: string }>(
      GET_APPROVALS,
      ...[tenant, JSON.stringify(keys)],
    );
    return new Map(rows.map(({ key, request }) => [key, request]));
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

  async conversations(
    principal: Principal,
    options: ConversationListOptions = {},
  ): Promise<Page<ConversationSummary>> {
    const { sort, archived } = options;
    const range = listRange(sort === "activity" ? { order: "desc", ...options } : options);
    const { tenant, subject } = principal;
    const reader = { tenant, subject, isMember: !mayReadAll(principal) };
    const query = listConversations(reader, range, options);
    const rows = await this.#queries.read<ConversationRow>(...query);
    return pageOf(
      rows,
      range.limit,
      (row) => toConversation(row, archived === true),
      ({ at, id }) => encodeCursor({ createdAt: at, id }),
    );
  }

  async titles(tenant: string, conversationIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    if (conversationIds.length === 0) return new Map();
    const ids = JSON.stringify([...new Set(conversationIds)]);
    const rows = await this.#queries.read<{ id: string; title: string }>(GET_TITLES, tenant, ids);
    return new Map(rows.map(({ id, title }) => [id, title]));
  }

  async mark(
    { tenant, subject }: Principal,
    { id, createdAt }: TurnsOwner,
    mark: ConversationMark,
    now: number | null,
  ): Promise<void> {
    const key = [tenant, subject, createdAt, id] as const;
    if (now === null) {
      await this.#queries.write([REMOVE_MARK[mark], ...key], [REMOVE_UNMARKED, ...key]);
      return;
    }
    const rows = await this.#queries.change(PUT_MARK[mark], ...key, now);
    if (rows.length === 0)
      throw conflict("Lists do not have this conversation. Retry in a moment if it is new.", {
        retriable: true,
      });
  }

  async activeRuns(tenant: string, projectId: string): Promise<number> {
    const [row] = await this.#queries.read<{ active: number }>(ACTIVE_RUNS, tenant, projectId);
    return row?.active ?? 0;
  }

  async runs(principal: Principal, options: PageOptions & RunFilter = {}): Promise<Page<RunSummary>> {
    const { order, limit, after } = listRange(options);
    const { tenant, subject } = principal;
    const { status, workflow } = options;
    const text = options.text?.toLowerCase();
    const starter = mayReadAll(principal) ? undefined : subject;
    const [statement, filters] = listRuns(order, defined({ starter, status, workflow, text }));
    const values = [after.createdAt, after.id, limit + 1, ...filters];
    const rows = await this.#queries.read<RunRow>(statement, tenant, ...values);
    const page = pageOf(
      rows.filter(({ found }) => found === 1),
      limit,
      toRun,
      cursorOf,
    );
    const last = rows.at(-1);
    return last?.found === 0 ? { nextCursor: cursorOf(last), ...page } : page;
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

function toConversation(row: ConversationRow, isArchived: boolean): ConversationSummary {
  return {
    id: row.id,
    title: row.title,
    agentId: row.agent_id,
    projectId: row.project_id,
    ...defined({ jurisdiction: jurisdictionOf(row.id) }),
    // SAFETY: only putConversation writes this column, from a value of this type.
    participants: JSON.parse(row.participants) as ConversationView["participants"],
    ...(row.forked_from !== null && {
      // SAFETY: only putConversation writes this column, from a value of this type.
      forkedFrom: JSON.parse(row.forked_from) as ConversationSummary["forkedFrom"] & {},
    }),
    ...(row.channel !== null && { channel: row.channel }),
    createdAt: toIso(row.created_at),
    lastActivityAt: toIso(row.active_at),
    ...(row.pinned === 1 && { pinned: true as const }),
    ...(isArchived && { archived: true as const }),
  };
}
