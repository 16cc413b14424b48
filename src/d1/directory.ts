/**
 * The directory: lists of agents, conversations and runs. The actors own the facts and write these rows. An outage of the directory affects
 * only lists.
 *
 * DIR-1  An upsert always writes one row, and once one more for each user of a conversation. The first put of a conversation writes two more,
 *        for its activity.
 * DIR-2  Every read is limited to one tenant. For a principal without a role that reads all, it is limited to the principal's own
 *        conversations and runs.
 * DIR-3  Lists ascend by creation. They continue after a cursor without loss or repetition while rows are added.
 * DIR-5  A page of runs reads about as many rows as it has when one filter applies: the starter of a principal without a role, a workflow
 *        or a status.
 *        With several filters, or a text, a page looks at up to 2,000 runs. It may then be short or empty and have a cursor.
 * DIR-6  A request for approval is listed only for the people who may answer it. An older state of its place never replaces a newer state.
 * DIR-7  A put of a place's requests writes only the changed rows.
 * DIR-8  A page of requests reads about as many rows as it has, for each caller, with and without a filter. In addition it reads an expired
 *        request, until twice its time limit is over. It also reads the caller's own request that others must answer, if a role of the
 *        caller may answer.
 * DIR-9  A page of requests ends with the request that brings it to 4 MiB.
 * DIR-10  An older state of a turn never replaces a newer state, in any order of puts. Repeated puts write no row.
 * DIR-11  A page of turns reads one index: the label of a filter, or the turns of the tenant. For a principal without a role that reads all,
 *         it reads the keys of the turns of the principal's own conversations.
 * DIR-12  A list by activity continues after a cursor without repetition. It omits a conversation that moves across the cursor, and no other.
 *         For a principal that reads all, a page reads about as many rows as it has. For another, it reads the keys of the principal's
 *         conversations.
 * DIR-13  Pins and archived conversations belong to one person. The lists of other people do not have them. A list omits the conversations that
 *         its reader archived, until a later turn begins.
 * DIR-14  The titles of a page of messages cost one query, which reads two rows for each conversation.
 * DIR-15  A page of tasks has only turns that messages of its reader started, in conversations that still have the reader. It looks at up to
 *         1,000 turns, so it may be short or empty and have a cursor. Its count looks at the newest 1,000.
 * DIR-4  An older state of a run never replaces a newer state, in any order of puts.
 */
import type { UsageTotals } from "../model/usage.ts";
import type { AgentIdentity } from "../protocol/agent-api.ts";
import type { ConversationListOptions } from "../protocol/conversation-api.ts";
import type { ConversationSummary } from "../protocol/conversation-schemas.ts";
import type { RunSummary } from "../protocol/run-schemas.ts";
import type { ListedTasks, TasksRequest, TurnRecord, TurnsRequest } from "../protocol/turn-records.ts";
import type { AgentUsage } from "../protocol/usage-schemas.ts";
import type { PublishedConversation } from "../protocol/views.ts";
import type { ApprovalsRequest, ListedApproval, WaitingApproval } from "../protocol/waiting-approvals.ts";
import type { RunStatus } from "../protocol/workflow-run.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";

/** The usage of a conversation as absolute totals, so repeated puts are no-ops. */
export interface ConversationUsage extends UsageTotals {
  tenant: string;
  agentId: string;
  conversationId: string;
}

export interface PublishedRun extends RunSummary {
  /** The number of its newest journal entry. */
  seq: number;
}

/** A conversation, as its rows name it. `createdAt` is in milliseconds since the epoch. */
export interface TurnsOwner {
  id: string;
  createdAt: number;
}

export interface PublishedTurns {
  turns: readonly TurnRecord[];
  /** The number of the conversation's newest journal entry. */
  seq: number;
  /** All turns with entries up to this number are published. */
  upTo: number;
  /** The newest beginning or end of these turns, in milliseconds since the epoch; absent for an unlisted conversation. */
  activeAt?: number;
}

export type ConversationMark = "pinned" | "archived";

/** The runs of a list. Absent members do not filter. */
export interface RunFilter {
  status?: RunStatus;
  workflow?: { library: string; id: string; version?: number };
  /** A part of the name, or of `library/id` of the workflow, in any case. */
  text?: string;
}

/** Every put of an agent, a conversation or a run needs its own time of creation, which is part of the row's key. */
export interface Directory {
  putAgent(agent: AgentIdentity): Promise<void>;
  putConversation(tenant: string, conversation: PublishedConversation, seq: number): Promise<void>;
  putUsage(usage: ConversationUsage): Promise<void>;
  putRun(tenant: string, run: PublishedRun): Promise<void>;
  putTurns(tenant: string, conversation: TurnsOwner, published: PublishedTurns): Promise<void>;
  /** Returns the highest `upTo` of a conversation; 0 before the first put. */
  publishedTurns(tenant: string, conversationId: string): Promise<number>;
  /** Replaces the requests of a place, a conversation or a run, that wait for people. `seq` numbers the state of the place. */
  putApprovals(tenant: string, place: string, seq: number, waiting: readonly ListedApproval[]): Promise<void>;
  /** Returns the requests that the principal may answer. `now` is in milliseconds since the epoch. Throws as `agents`. */
  approvals(
    principal: Principal,
    options: ApprovalsRequest & { now: number },
  ): Promise<Page<WaitingApproval>>;
  /** Returns the published usage of an agent's conversations. Throws `UNAVAILABLE`. */
  usage(tenant: string, agentId: string): Promise<AgentUsage>;
  /** Throws `INVALID_INPUT` for an invalid cursor, `UNAVAILABLE` if the database does not answer. */
  agents(tenant: string, options?: PageOptions): Promise<Page<AgentIdentity>>;
  /** Returns the conversations that the principal may see. Throws as `agents`. */
  conversations(principal: Principal, options?: ConversationListOptions): Promise<Page<ConversationSummary>>;
  /** Returns the titles of conversations by their ids. Conversations without a title are absent. Throws `UNAVAILABLE`. */
  titles(tenant: string, conversationIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /**
   * Sets or removes the principal's mark on a conversation that the principal may read. `now` is in milliseconds since the epoch. Throws
   * `CONFLICT` for a mark on a conversation that no list has, and `UNAVAILABLE`.
   */
  mark(
    principal: Principal,
    conversation: TurnsOwner,
    mark: ConversationMark,
    now: number | null,
  ): Promise<void>;
  /** Returns the turns of the conversations that the principal may see. Throws as `agents`. */
  turns(principal: Principal, options?: TurnsRequest): Promise<Page<TurnRecord>>;
  /** Returns the principal's tasks with an agent, the newest change first. No role sees the tasks of others. Throws as `agents`. */
  tasks(principal: Principal, request: TasksRequest): Promise<ListedTasks>;
  /** Returns the number of runs of a project that have not ended. Throws as `agents`. */
  activeRuns(tenant: string, projectId: string): Promise<number>;
  /** Returns the runs that the principal may see. Throws as `agents`. */
  runs(principal: Principal, options?: PageOptions & RunFilter): Promise<Page<RunSummary>>;
}
