/**
 * What a conversation holds in memory: its record, the counters of the newest journal row, and its active turns.
 * Everything here is plain data, replaced as a whole by the reducer and never changed in place.
 *
 * BOUND-1  Nothing here grows with history: finished turns live in the store only.
 */

import type { ModelContext, OutputSpec, ToolSpec } from "../../../model/context.ts";
import type { ErrorCategory } from "../../../model/error.ts";
import type { NativeReply } from "../../../model/messages.ts";
import type { FinishReason, RateLimitFeedback } from "../../../model/reply.ts";
import type { TokenUsage, UsageTotals } from "../../../model/usage.ts";
import type { ToolEffect, VersionChain } from "../../../protocol/definitions.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import type { Caller, TurnIssues } from "../../../protocol/views.ts";
import type { Content } from "../../../shared/content.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { JsonObject } from "../../../shared/json.ts";

/** What was decided when the conversation was created. */
export interface ConversationIdentity {
  id: string;
  tenant: string;
  title: string | null;
  agentId: string;
  projectId: string;
  participants: { type: "user" | "agent"; id: string }[];
  chain: VersionChain;
  /** Absent where it is in lists. */
  listed?: false;
  /** What names the request that created it. */
  fingerprint?: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/** The counters every journal row carries, so that a wake reads one row. */
export interface Head {
  /** Turns started so far; the next turn gets this number plus one. */
  turns: number;
  /** The next event's sequence number, by session. */
  sessions: Record<string, number>;
  /** Numbers of the active turns, ascending. */
  active: number[];
  /** What the model calls used so far. Absent in rows of releases that did not count. */
  usage?: UsageTotals;
}

export interface ConversationState {
  readonly record: ConversationIdentity;
  /** Number of the newest journal entry. */
  readonly seq: number;
  readonly turns: number;
  readonly sessions: Readonly<Record<string, number>>;
  readonly usage: UsageTotals;
  readonly active: ReadonlyMap<number, Turn>;
}

/** A turn, active or finished, with its content. */
export interface Turn {
  readonly n: number;
  readonly stem: string;
  readonly agentId: string;
  readonly caller: Caller;
  /** The client's idempotency key, as supplied. */
  readonly clientId?: string;
  readonly input: Content;
  readonly replyTo?: string;
  /** What its answer must be: JSON of this schema. Absent = any text. */
  readonly output?: OutputSpec;
  /** Tools that the client runs. */
  readonly tools?: readonly ToolSpec[];
  /** Of the turn's first model call; `auto` when absent. */
  readonly toolChoice?: ModelContext["toolChoice"];
  readonly status: "active" | "completed" | "failed";
  readonly createdAt: number;
  readonly completedAt?: number;
  /** Number of the turn's first journal entry. */
  readonly firstSeq: number;
  /** The cycle sees the session's events below this number. */
  readonly snapshot: number;
  /** Where a completed turn's content stands in the session of its agent. */
  readonly events?: { readonly from: number; readonly count: number };
  /** Next free item index. The user's message is item 0. */
  readonly items: number;
  /** The model call in progress; `null` while tools run and when the turn is over. */
  readonly call: ModelCall | null;
  readonly replies: readonly Reply[];
  /** Answers that did not fit `output`, while the turn is not completed. */
  readonly repairs?: readonly Repair[];
  /** What the model calls took. Absent in turns of releases that kept none. */
  readonly calls?: readonly CallRecord[];
  readonly operations: readonly Operation[];
  /** How often the actor died with this turn active. */
  readonly recoveries: number;
  readonly issues: TurnIssues;
  readonly error?: ErrorData;
}

export interface ModelCall {
  /** The message this call streams into. */
  readonly item: number;
  /** From 1; ascends over all that is tried for this message. */
  readonly attempt: number;
  /** Which of the chain's models is asked: 0, and so absent, is the first, then come the fallbacks. */
  readonly profile?: number;
  /** Attempts for this message before the present model, or the present try at its answer; 0 when absent. */
  readonly before?: number;
  /** Not before this time, in milliseconds: the backoff after a failed attempt. */
  readonly notBefore: number;
  /** The last call of a turn out of moves: it gets no tools. */
  readonly final: boolean;
}

/** One reply of the model. */
export interface Reply {
  readonly item: number;
  readonly text: string;
  readonly reasoning?: string;
  readonly finishReason: FinishReason;
  readonly usage?: TokenUsage;
  readonly providerMessageId?: string;
  /** What its provider wants back in its own words. */
  readonly native?: NativeReply;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** An answer that was withdrawn, and what the model is told of it. */
export interface Repair {
  /** How many replies had been recorded. */
  readonly after: number;
  /** What the model had answered, as it is given back. */
  readonly text: string;
  readonly problem: string;
}

/** One call of a model, with all of its attempts. A call that falls back to another model is another call. */
export interface CallRecord {
  /** The message it was for. */
  readonly item: number;
  /** As in `ModelCall`. */
  readonly profile: number;
  /** Milliseconds since the epoch, as all times here. */
  readonly startedAt: number;
  /** Absent while another attempt is to come. */
  readonly finishedAt?: number;
  readonly firstTextAt?: number;
  /** Attempts whose outcome is known. */
  readonly attempts: number;
  /** The outcome of the last attempt. */
  readonly category: ErrorCategory | "none";
  readonly status?: number;
  readonly requestId?: string;
  /** Of all attempts that were counted, failed ones included. */
  readonly usage?: TokenUsage;
  /** Only where the provider said that a limit was reached. */
  readonly rateLimit?: RateLimitFeedback;
}

/** One tool call that the model asked for. */
export interface Operation {
  readonly item: number;
  /** Index of the reply that asked for it. */
  readonly reply: number;
  /** The provider's id of the call. */
  readonly toolCallId: string;
  readonly name: string;
  /** The pinned tool; `null` if the model named one that the agent does not have. */
  readonly tool: { library: string; id: string; version: number } | null;
  readonly effect: ToolEffect;
  /** The client runs it, and the conversation waits for its result. */
  readonly client?: true;
  /** Of a client's tool: from the reply that asked for it on. */
  readonly timeoutMs: number;
  readonly input: JsonObject;
  /** The arguments as the model wrote them, where they were not a JSON object. */
  readonly invalidArguments?: string;
  /** Absent while the call is pending. */
  readonly result?: ToolResult;
  readonly completedAt?: number;
}

/** The next event's number in a session. Any id is a name here, also one that every object has. */
export function nextEvent(sessions: Readonly<Record<string, number>>, sessionId: string): number {
  return Object.hasOwn(sessions, sessionId) ? (sessions[sessionId] ?? 0) : 0;
}

/** Operations without a result. */
export function pendingOperations(turn: Turn): Operation[] {
  return turn.operations.filter((operation) => operation.result === undefined);
}

/** Whether all that an active turn still waits for are results from a client. */
export function waitsForClient(turn: Turn): boolean {
  if (turn.status !== "active" || turn.call !== null) return false;
  const pending = pendingOperations(turn);
  return pending.length > 0 && pending.every(({ client }) => client);
}

/** When a client's operation times out, in milliseconds since the epoch. */
export function deadlineOf(turn: Turn, { reply, timeoutMs }: Operation): number {
  return (turn.replies[reply]?.at ?? turn.createdAt) + timeoutMs;
}

/** The agent's message of a finished turn, or of one that is about to finish: the reply without tool calls. */
export function finalReply(turn: Turn): Reply | undefined {
  const last = turn.replies.at(-1);
  if (last === undefined) return undefined;
  const index = turn.replies.length - 1;
  return turn.operations.some((operation) => operation.reply === index) ? undefined : last;
}
