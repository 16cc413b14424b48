/** A conversation's records as its clients see them. Pure. */
import type {
  ConversationView,
  JournalEntryView,
  MessageView,
  ResolvedApproval,
  TurnSummary,
  TurnView,
} from "../../../protocol/conversation-schemas.ts";
import type { PinnedHook } from "../../../protocol/definitions.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import { messageId, operationId, type TurnKey, turnId } from "../../../protocol/ids.ts";
import type { ApprovalView, MoveView } from "../../../protocol/move-schemas.ts";
import type { OperationView, PublishedConversation } from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import { toIso } from "../../../shared/time.ts";
import { hookRunMember, runMember } from "../core/called-workflow.ts";
import { correlationOf } from "../core/correlation.ts";
import type { JournalEntry } from "../core/journal-entry.ts";
import { budgetLeft, conversationBudget, turnSpending } from "../core/ledger.ts";
import { shownStatus } from "../core/life.ts";
import { awaitsApproval, type Operation, type OperationMode } from "../core/operation.ts";
import { usedOnce } from "../core/recalled.ts";
import { answeredBy, type ShownCall, shownCall } from "../core/shown-call.ts";
import {
  type ConversationIdentity,
  type ConversationState,
  chainOf,
  type ForkOrigin,
  primaryAgent,
} from "../core/state.ts";
import { recalledBy } from "../core/taints.ts";
import { issuesOf, type Reply, type Turn } from "../core/turn.ts";
import { outputOf } from "../core/turn-events.ts";
import { agentReplies, finalReply, operationsOf } from "../core/turn-operations.ts";
import { agentMember, clientMember, idsOf, isInterim, taskMember, wireError } from "../core/view-members.ts";
import type { TurnFacts } from "../store/turn-reading.ts";
import { callViews, turnCost, turnUsage } from "./call-views.ts";

/** A conversation and its agents, with the versions that it has pinned. */
type Agents = Pick<ConversationIdentity, "id" | "agents" | "call">;

export function conversationView(
  state: Pick<
    ConversationState,
    | "record"
    | "status"
    | "gate"
    | "order"
    | "orchestration"
    | "queue"
    | "active"
    | "spent"
    | "spentBy"
    | "budget"
  >,
): ConversationView {
  const budget = conversationBudget(state);
  const left = budgetLeft(state);
  const limits = budget === null || left === null ? {} : { budget, budgetLeft: left };
  const { record, gate, order: turns, orchestration, queue, active } = state;
  const queued = queue && queue.next - queue.first;
  const running = active.size > 0 ? "running" : "idle";
  return {
    ...conversationSummary(record),
    status: shownStatus(state),
    gate: gate === "open" ? running : gate,
    turns,
    ...defined({ orchestration, queued, locationHint: record.locationHint }),
    ...(record.listed === false && { listed: false as const }),
    ...limits,
  };
}

function forkView({ conversationId, turnId }: ForkOrigin): ConversationView["forkedFrom"] & {} {
  return { conversationId, turnId };
}

export function conversationSummary(record: ConversationIdentity): PublishedConversation {
  const { id, title, projectId, participants, call, channel, createdAt } = record;
  const calledBy =
    call && ("runId" in call.caller ? call.caller : { ...call.caller, conversationId: call.from });
  return {
    id,
    title,
    agentId: primaryAgent(record).id,
    projectId,
    ...defined({ jurisdiction: jurisdictionOf(id) }),
    participants: [...participants],
    ...defined({ calledBy, channel }),
    ...(record.forkedFrom && { forkedFrom: forkView(record.forkedFrom) }),
    createdAt: toIso(createdAt),
  };
}

/** Returns the message of a transcript entry; `null` if its content was erased. */
export function messageView(turn: Turn, item: number, at: number): MessageView | null {
  const base = { id: messageId(turn, item), turnId: turnId(turn), createdAt: toIso(at) };
  const { input, clientId, agentId, caller, regenerates, edits } = turn;
  if (item === 0 && caller.type === "agent")
    return { ...base, role: "agent", content: input, agentId: caller.agentId };
  const runId = caller.type === "workflow" ? caller.runId : undefined;
  if (item === 0) {
    const facts = defined({ clientId, runId, regenerates, edits });
    return { ...base, role: "user", content: input, ...facts };
  }
  const reply = turn.replies.find((candidate) => candidate.item === item);
  if (reply === undefined) return null;
  const { text: content, stopped, notice } = reply;
  return { ...base, role: "agent", content, agentId, ...defined({ stopped, notice }) };
}

export function isTranscriptEntry({ type, data }: JournalEntry): boolean {
  return type === "message.user" || (type === "message.completed" && !isInterim(data));
}

export function turnSummaryView(turn: TurnFacts): TurnSummary {
  const { status, agentId, caller, createdAt, completedAt, queued, waiting, error, silent } = turn;
  const { regenerates, edits, replacedBy } = turn;
  const phase = queued ? ("queued" as const) : waiting === undefined ? undefined : ("waiting" as const);
  return {
    id: turnId(turn),
    status,
    agentId,
    ...(caller.type === "user" ? {} : { caller }),
    createdAt: toIso(createdAt),
    completedAt: completedAt === undefined ? null : toIso(completedAt),
    ...(phase === undefined ? {} : { phase }),
    ...(error === undefined ? {} : { error: wireError(error) }),
    ...defined({ silent, regenerates, edits, replacedBy }),
    ...issuesOf(turn),
  };
}

export function answeredTurnView(
  record: ConversationIdentity,
  turn: Turn,
): TurnSummary & Pick<TurnView, "spent"> {
  const spent = turnSpending(chainOf(record, turn.agentId), turn);
  return { ...turnSummaryView(turn), ...defined({ output: outputOf(turn) }), spent };
}

function hookRunId(
  record: ConversationIdentity,
  turn: Turn,
  hook: PinnedHook | undefined,
  [item, attempt = 1]: [item: number | undefined, attempt?: number | undefined],
): string | null {
  if (item === undefined) return null;
  return hookRunMember(record, turn, hook, { item, attempt }).runId ?? operationId(turn, item);
}

/** `previous` is the id of the turn before. */
export function turnView(record: ConversationIdentity, turn: Turn, previous: string | undefined): TurnView {
  const { caller, exchange, input, replyTo, createdAt, completedAt } = turn;
  const answer = finalReply(turn);
  const { contextAssembly, memoryExtraction } = chainOf(record, turn.agentId);
  const { assembly, attempt, extraction, extractionAttempt } = turn.hooks ?? {};
  return {
    ...answeredTurnView(record, turn),
    conversationId: record.id,
    answer: turn.status === "completed" ? (answer?.text ?? null) : null,
    caller,
    input,
    correlationId: correlationOf(turn),
    userMessageId: exchange?.message ?? messageId(turn, 0),
    agentMessageIds: agentReplies(turn).map(({ item }) => messageId(turn, item)),
    replyToMessageId: replyTo ?? null,
    contextAssemblyRunId: hookRunId(record, turn, contextAssembly, [assembly, attempt]),
    memoryExtractionRunId: hookRunId(record, turn, memoryExtraction, [extraction, extractionAttempt]),
    // The clock may have been set back in between.
    latencyMs: completedAt === undefined ? null : Math.max(0, completedAt - createdAt),
    usage: turnUsage(turn),
    ...defined({ budget: turn.budget }),
    cost: turnCost(chainOf(record, turn.agentId), turn),
    calls: callViews(record, turn, previous),
    ...memoryMembers(turn),
    moves: movesOf(record, turn),
  };
}

/** Returns the turn's memories, given or recalled, as a member, if any. */
function memoryMembers(turn: Turn): Pick<TurnView, "memories" | "memoryError"> {
  const { recalled, recalledBefore = [], operations } = turn;
  const memories = usedOnce([
    ...recalledBefore,
    ...(recalled?.used ?? []),
    ...operations.flatMap(recalledBy),
  ]);
  return defined({ memories: memories.length === 0 ? undefined : memories, memoryError: recalled?.failed });
}

/** Returns one move per tool call, or one text-only move; only a reply's first move has its reasoning and raw form. */
export function movesOf(record: Agents, turn: Turn): MoveView[] {
  const moves = turn.replies.flatMap<Omit<MoveView, "sequence">>((reply, index) => {
    const operations = operationsOf(turn, index);
    const createdAt = toIso(reply.at);
    const first = {
      id: messageId(turn, reply.item),
      ...(reply.text === "" ? {} : { reasoning: reply.text }),
      raw: rawReply(reply, operations),
      createdAt,
    };
    if (operations.length === 0) return [first];
    return operations.map((operation, position) => ({
      ...(position === 0 ? first : { createdAt }),
      id: operationId(turn, operation.item),
      ...toolParts(record, turn, operation),
    }));
  });
  return moves.map((move, index) => ({ ...move, sequence: index + 1 }));
}

function toolParts(
  record: Agents,
  turn: Turn,
  operation: Operation,
): Pick<MoveView, "toolCall" | "toolResult"> {
  const { item, name, tool, target, mode, attempt, result } = operation;
  const toolCall = {
    operationId: operationId(turn, item),
    name,
    toolId: tool === null ? null : tool.library === "" ? tool.id : `${tool.library}/${tool.id}`,
    ...inputOf(record, turn, operation),
    ...clientMember(target),
    ...agentMember(turn, operation),
    ...runMember(record, turn, operation),
    ...(attempt === 1 ? {} : { attempt }),
    ...asyncMember(mode),
    ...approvalMember(record, turn, operation),
    ...taskMember(operation),
  };
  if (result === undefined) return { toolCall };
  return { toolCall, toolResult: { success: result.success, ...outcomeView(result) } };
}

/** Returns a reply of a model with its tool calls, without their results. */
export function rawReply(reply: Reply, operations: readonly Operation[]): Json {
  const { text, reasoning, finishReason, usage, stopped, notice, providerMessageId: id } = reply;
  return {
    text,
    ...defined({ reasoning }),
    toolCalls: operations.map(({ toolCallId, name, input, invalidArguments }) => ({
      id: toolCallId,
      name,
      arguments: invalidArguments ?? input,
    })),
    finishReason,
    ...(usage === undefined ? {} : { usage: { ...usage } }),
    ...defined({ id, stopped, notice }),
  };
}

export function operationView(record: Agents, turn: Turn, operation: Operation): OperationView {
  const { item, name, target, mode, status, attempt, result, deadline, hold } = operation;
  const base = {
    id: operationId(turn, item),
    turnId: turnId(turn),
    name,
    ...inputOf(record, turn, operation),
    ...clientMember(target),
    ...agentMember(turn, operation),
    ...runMember(record, turn, operation),
    ...asyncMember(mode),
    ...approvalMember(record, turn, operation),
    ...taskMember(operation),
    ...(attempt === 1 ? {} : { attempt }),
  };
  if (status === "deferred" && deadline !== undefined)
    return { ...base, deferredUntil: toIso(deadline), state: "running" };
  if (status === "pending" || status === "dispatched" || status === "interrupted" || status === "deferred")
    return { ...base, ...(hold?.isHeld === true && { held: true }), state: "running" };
  return { ...base, state: status, ...(result && outcomeView(result)) };
}

/** Returns the input of an operation: the model's input, or the approved input (APPROVE-8). */
function inputOf(record: Agents, { agentId }: Turn, operation: Operation): ShownCall {
  const isAsked = awaitsApproval(operation) || operation.approval !== undefined;
  return isAsked ? shownCall(chainOf(record, agentId), operation) : { input: operation.input };
}

export function resolvedApproval(record: Agents, turn: Turn, operation: Operation): ResolvedApproval {
  const ids = { operationId: operationId(turn, operation.item), turnId: turnId(turn) };
  return { ...ids, approval: {}, ...approvalMember(record, turn, operation) };
}

function approvalMember(record: Agents, turn: Turn, operation: Operation): { approval?: ApprovalView } {
  const { approval, deadline } = operation;
  if (awaitsApproval(operation)) {
    const expiresAt = deadline === undefined ? undefined : toIso(deadline);
    return { approval: { ...defined({ expiresAt }), ...answeredBy(record, turn, operation) } };
  }
  return approval === undefined ? {} : { approval: { ...approval, at: toIso(approval.at) } };
}

/** Returns the member of a background operation; an empty object for other operations. */
function asyncMember(mode: OperationMode): { async?: true } {
  return mode === "async" ? { async: true } : {};
}

function outcomeView({
  success,
  result,
  error,
}: ToolResult): Pick<OperationView, "error"> & { result?: Json } {
  return success ? { result: result ?? null } : { error: wireError(error) };
}

/** `turn` is absent for entries without a turn, and for turns with an erased row. */
export function journalEntryView(
  entry: JournalEntry,
  seq: number,
  at: number,
  turn: (TurnKey & Pick<Turn, "clientId" | "correlationId">) | undefined,
): JournalEntryView {
  const { type, data } = entry;
  const ids = turn === undefined ? {} : idsOf(entry, turn);
  return { seq, type, time: toIso(at), ...defined({ data }), ...ids, ...linksOf(entry, turn) };
}

/** The entries that a message's signal causes. The message causes the entries after them. */
const OF_SIGNAL: ReadonlySet<JournalEntry["type"]> = new Set(["turn.started", "message.user"]);

function linksOf(
  { type, data }: JournalEntry,
  turn: (TurnKey & Pick<Turn, "clientId" | "correlationId">) | undefined,
): Pick<JournalEntryView, "correlationId" | "causeId"> {
  if (turn === undefined) {
    const { correlationId, causeId } = isJsonObject(data) ? data : {};
    return defined({ correlationId: textOf(correlationId), causeId: textOf(causeId) });
  }
  const causeId = OF_SIGNAL.has(type) ? turn.clientId : messageId(turn, 0);
  return { correlationId: correlationOf(turn), ...defined({ causeId }) };
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}
