/** A turn of a conversation, with its calls, replies and operations. All times are milliseconds since the epoch. */
import type { ModelContext, OutputSpec, ToolSpec } from "../../../model/context.ts";
import type { ErrorCategory } from "../../../model/error.ts";
import type { NativeReply } from "../../../model/messages.ts";
import type { FinishReason, RateLimitFeedback } from "../../../model/reply.ts";
import type { Amounts, TokenEstimate } from "../../../model/spending.ts";
import type { Taint } from "../../../model/taint.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import type { Budget } from "../../../protocol/budget.ts";
import type { Caller, TurnIssues } from "../../../protocol/caller-schemas.ts";
import type { Content } from "../../../shared/content.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { JsonObject } from "../../../shared/json.ts";
import type { Assembly } from "./hooks.ts";
import type { Operation } from "./operation.ts";

/** A turn, active or finished, with its content. */
/** The hooks of a turn, by their items. Their operations have these ids. */
export interface HooksOfTurn {
  /** The newest context hook. */
  readonly assembly?: number;
  /** The newest attempt of that hook; 1 when absent. */
  readonly attempt?: number;
  /** The context hooks of earlier cycles that are workflows, each with the number of its attempts. */
  readonly earlier?: readonly (readonly [item: number, attempts: number])[];
  readonly extraction?: number;
  /** The newest attempt of the extraction; 1 when absent. */
  readonly extractionAttempt?: number;
}

export interface Turn {
  readonly n: number;
  readonly stem: string;
  readonly agentId: string;
  readonly caller: Caller;
  /** Present if an agent or a run started the turn. */
  readonly exchange?: Exchange;
  /** The caller of a turn that a node of a run started. */
  readonly invited?: RunInvitation;
  /** The client's idempotency key, as supplied. */
  readonly clientId?: string;
  /** The id of the turn with the same message that this turn answers again. */
  readonly regenerates?: string;
  /** The id of the turn with the message that this turn's message replaces. */
  readonly edits?: string;
  /** The number of replies that it took over from the turn that it regenerates; 0 when absent. */
  readonly taken?: number;
  readonly replacedBy?: string;
  /** The correlation id of its message, as supplied. `correlationOf` returns the id of any turn. */
  readonly correlationId?: string;
  /** The place in a trace that its message came with; absent if it begins a trace of its own. */
  readonly traceparent?: string;
  readonly input: Content;
  /** The taint of the message beyond its author: of the request that led another agent to write it, or as its sender says. Absent if it is empty. */
  readonly inputTaint?: Taint;
  readonly replyTo?: string;
  /** The agent that the message names as its addressee. */
  readonly to?: string;
  /** The message that `replyTo` names, for the model. */
  readonly replied?: RepliedMessage;
  /** The schema of the answer. Absent = any text. */
  readonly output?: OutputSpec;
  /** Tools that the client runs. */
  readonly tools?: readonly ToolSpec[];
  /** Applies to the turn's first reply; `auto` when absent. */
  readonly toolChoice?: ModelContext["toolChoice"];
  /** The most tokens of a reply of the model, if the message sets a limit. */
  readonly maxOutputTokens?: number;
  /** As in `StartTurn`. */
  readonly singleCalls?: true;
  /** The limits of this turn, if any. */
  readonly budget?: Budget;
  readonly status: "active" | "completed" | "failed";
  readonly createdAt: number;
  readonly completedAt?: number;
  /** The periods in which it called models or ran tools, if it also waited; absent = all the time (WORK-1). */
  readonly worked?: readonly Period[];
  /** Number of the turn's first journal entry. */
  readonly firstSeq: number;
  /** The numbers of its journal entries after the commit that ended it, ascending; absent if there are none. */
  readonly lateEntries?: readonly number[];
  /** The journal entry at the start of the cycle: the model sees facts stored up to its commit. */
  readonly snapshotSeq: number;
  /** The turn waits for those before it (ORDER-1). */
  readonly queued?: true;
  /** Every call is a `sync` operation: who sent the message gets one answer only. */
  readonly foreground?: true;
  /**
   * The number of the entry with which a wait began. The turn waits for a person, for deferred results (DEFER-5), or, after its cycle, for
   * background results (ASYNC-2).
   */
  readonly waiting?: number;
  /** The note for the model on other turns that were active when the cycle began, if any. */
  readonly concurrentNote?: string;
  /** The taint of the note; absent if it is empty. */
  readonly concurrentTaint?: Taint;
  /** The newest cycle of the ended turn had such a note. */
  readonly noted?: true;
  /** Numbers of the finished turns of other agents that the cycle shows, ascending. Absent if empty. */
  readonly shownTurns?: readonly number[];
  /** The model's provider found the request too long: the history is cut to half. */
  readonly halved?: true;
  /** The newest turn with a message that the model has seen or need not see (ORDER-4); the turn's own number if absent. */
  readonly messageCursor?: number;
  /** The place of the turn's events in the session of its agent, once the turn is over. */
  readonly events?: { readonly from: number; readonly count: number };
  /** It completed without a message (TALK-4). */
  readonly silent?: true;
  /** Next free item index. The user's message is item 0. */
  readonly items: number;
  /** The context hook in progress: the model is called when it has given the request. */
  readonly assembly?: Assembly;
  /** The provider's request that the context hook gave for this cycle. Removed when the turn ends. */
  readonly request?: JsonObject;
  readonly requestTaint?: Taint;
  /** The origins of the sources in the requests that the turn has made, as in `RequestTaint`. Absent if the list is empty. */
  readonly taint?: Taint;
  /** As in `RequestTaint`. Removed when the turn ends. */
  readonly echoes?: Taint;
  /** The memories recalled for the cycle. Absent if the agent has no memory, or before the recall. */
  readonly recalled?: Recalled;
  readonly recalledBefore?: readonly UsedMemory[];
  readonly hooks?: HooksOfTurn;
  /** The model call in progress; `null` while tools run and when the turn is over. */
  readonly call: ModelCall | null;
  readonly replies: readonly Reply[];
  /** Answers that did not fit `output`. Removed when the turn ends. */
  readonly repairs?: readonly Repair[];
  /** The notes for the model on newer messages. Removed when the turn ends. */
  readonly additions?: readonly Addition[];
  /** The reply that the model's provider paused and `call` continues. */
  readonly paused?: PausedReply;
  /** Number of continuations of paused replies; 0 when absent. */
  readonly continuations?: number;
  /** Records of the model calls. Absent before the first. */
  readonly calls?: readonly CallRecord[];
  readonly operations: readonly Operation[];
  /** Tool calls that have run or run; 0 when absent. */
  readonly toolCalls?: number;
  /** The spending of called agents and of models in tasks; absent if zero. */
  readonly delegated?: Amounts;
  /** Crashes of the actor while effects of this turn may have run. */
  readonly recoveries: number;
  /** Crashes that an outcome of the turn has followed; 0 if absent. */
  readonly overcome?: number;
  readonly issues: TurnIssues;
  readonly error?: ErrorData;
  /** The items with erased content, ascending; absent if empty. */
  readonly erased?: readonly number[];
}

export interface UsedMemory {
  readonly id: string;
  readonly version: number;
  /** Set for an earlier cycle with tainted memories. */
  readonly tainted?: true;
}

export interface Recalled {
  readonly used: readonly UsedMemory[];
  /** The note for the model; absent without memories. Removed when the turn ends. */
  readonly note?: string;
  /** The note about the artifacts of the project, if the persona asks for it (KNOWLEDGE-2). Removed when the turn ends. */
  readonly knowledge?: string;
  /** Some of them are tainted. */
  readonly tainted?: true;
  readonly failed?: string;
}

/** A time; `to` is absent while it lasts. */
export interface Period {
  readonly from: number;
  readonly to?: number;
}

/** The place of a turn that an agent started. */
export interface Exchange {
  /** Number of the turn that the user's message started. */
  readonly of: number;
  /** The user. */
  readonly by: Caller;
  /** The id of the agent's message that started the turn, if the transcript has it as the answer of another turn. */
  readonly message?: string;
}

/** The operation of a node that waits for a turn. */
export interface RunInvitation {
  readonly operationId: string;
  /** From 1. */
  readonly attempt: number;
  /** The agents that wait for the run, the first agent first. */
  readonly path: readonly string[];
  /** Another turn waits for the run, so this turn skips the queue (RUNINVITE-3). */
  readonly passes?: true;
}

export interface RepliedMessage {
  readonly role: "user" | "agent";
  /** The author; absent for the agent's own message if the conversation has one agent. */
  readonly by?: Caller;
  /** At most `MAX_QUOTED_LENGTH`. */
  readonly text: string;
  /** The taint of the text; absent if it is empty. */
  readonly taint?: Taint;
}

/** The members of a turn that its user's message sets. */
export type TurnRequest = Pick<
  Turn,
  | "stem"
  | "agentId"
  | "caller"
  | "exchange"
  | "invited"
  | "clientId"
  | "regenerates"
  | "edits"
  | "correlationId"
  | "traceparent"
  | "input"
  | "inputTaint"
  | "replyTo"
  | "to"
  | "replied"
  | "output"
  | "tools"
  | "toolChoice"
  | "maxOutputTokens"
  | "singleCalls"
  | "foreground"
  | "budget"
>;

export type CallingTurn = Turn & { readonly call: ModelCall };

export interface ModelCall {
  /** Index of the message that receives the reply. */
  readonly item: number;
  /** From 1; ascends over all attempts for this message, also of other models. */
  readonly attempt: number;
  /** Index of the model in the chain: 0 (when absent) is the agent's own, the fallbacks follow. */
  readonly profile?: number;
  /** Attempts for this message that do not count against the current model's limit; 0 when absent. */
  readonly before?: number;
  /** Earliest start of the attempt: the end of the backoff. */
  readonly notBefore: number;
  /** The turn's last call: the model gets no tools. */
  readonly final: boolean;
  /** The models with providers that requested a wait, if any. */
  readonly deferred?: readonly DeferredModel[];
  /** The tokens that are reserved for the attempt; absent if no budget applies. */
  readonly reserved?: TokenEstimate;
  /** The attempt waits for the agent's answer (LEASE-8). */
  readonly leasing?: true;
}

/** A model that may be called for a message, now or later. */
export interface DeferredModel {
  /** As in `ModelCall`. */
  readonly profile: number;
  /** Attempts of the model for this message. */
  readonly tried: number;
  /** Earliest time of its next attempt. */
  readonly notBefore: number;
}

export interface Reply {
  readonly item: number;
  readonly text: string;
  readonly reasoning?: string;
  readonly finishReason: FinishReason;
  readonly usage?: TokenUsage;
  readonly providerMessageId?: string;
  /** The reply in its provider's own format, to be sent back to that provider. */
  readonly native?: NativeReply;
  /** The reply was cut off because the turn was stopped or failed during streaming. The text is the shown text. */
  readonly stopped?: true;
  /** The origins that the reply inherits, and the other origins in its request, as in `RequestTaint`. */
  readonly taint?: Taint;
  readonly echoes?: Taint;
  /** The text is a notice of the platform, because the model gave no text in its last call. */
  readonly notice?: true;
  readonly at: number;
}

/** The part of a reply that came before its provider's last pause. */
export type PausedReply = Pick<Reply, "text" | "reasoning" | "usage" | "providerMessageId" | "native">;

/** An answer that was withdrawn, and the problem that the model is sent. */
export interface Repair {
  /** Number of replies recorded before the answer. */
  readonly after: number;
  /** The answer's text, as it is sent back to the model. */
  readonly text: string;
  readonly problem: string;
}

/** Messages of the turn's caller that the model sees after a number of replies. */
export interface Addition {
  readonly after: number;
  /** The beginnings of the newest messages, in order. */
  readonly messages: readonly string[];
  /** Number of those before them; 0 when absent. */
  readonly earlier?: number;
  /** The taint of the messages; absent if it is empty. */
  readonly taint?: Taint;
}

/** One call of a model, with all of its attempts. A fallback to another model is another call. */
export interface CallRecord {
  /** Index of the message that the call was for. */
  readonly item: number;
  /** As in `ModelCall`. */
  readonly profile: number;
  readonly startedAt: number;
  /** Absent if another attempt follows. */
  readonly finishedAt?: number;
  readonly firstTextAt?: number;
  /** Attempts with a known outcome. */
  readonly attempts: number;
  /** The outcome of the last attempt. */
  readonly category: ErrorCategory | "none";
  readonly status?: number;
  readonly requestId?: string;
  /** Sum over all counted attempts, including failed attempts. */
  readonly usage?: TokenUsage;
  /** Sum over all attempts that were not counted. */
  readonly estimate?: TokenEstimate;
  /** Attempts that a crash interrupted; 0 when absent. */
  readonly crashed?: number;
  /** Present only if the provider reported that a limit was reached. */
  readonly rateLimit?: RateLimitFeedback;
}

export type AttemptsRecord = Omit<CallRecord, "item" | "profile">;

/** Returns a turn's issues as a member; `{}` without issues. */
export function issuesOf({ issues }: Pick<Turn, "issues">): { issues?: TurnIssues } {
  return Object.keys(issues).length === 0 ? {} : { issues };
}
