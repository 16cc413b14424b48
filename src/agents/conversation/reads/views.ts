/** A conversation's records as its clients see them. Pure. */

import type {
  ConversationView,
  JournalEntryView,
  MessageView,
  MoveView,
  OperationView,
  TurnSummary,
  TurnView,
} from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json } from "../../../shared/json.ts";
import { wireError } from "../core/frames.ts";
import { messageId, operationId, turnId } from "../core/ids.ts";
import type { JournalEntry } from "../core/journal-entry.ts";
import {
  type ConversationIdentity,
  finalReply,
  type Operation,
  type Reply,
  type Turn,
} from "../core/state.ts";
import type { TurnRow } from "../core/turn-events.ts";
import { outputOf } from "../core/turn-events.ts";
import { callViews, turnCost, turnUsage } from "./call-views.ts";

const iso = (milliseconds: number) => new Date(milliseconds).toISOString();

export function conversationView(record: ConversationIdentity, activeTurns: number): ConversationView {
  const { id, title, agentId, projectId, participants, createdAt } = record;
  return {
    id,
    title,
    status: "active",
    gate: activeTurns > 0 ? "running" : "idle",
    agentId,
    projectId,
    participants,
    createdAt: iso(createdAt),
  };
}

/** The message that a `message.user` or final `message.completed` entry stands for. */
export function messageView(turn: Turn, item: number, at: number): MessageView | null {
  const base = {
    id: messageId(turn.stem, turn.n, item),
    turnId: turnId(turn.stem, turn.n),
    createdAt: iso(at),
  };
  if (item === 0) {
    const client = turn.clientId === undefined ? {} : { clientId: turn.clientId };
    return { ...base, role: "user", content: turn.input, ...client };
  }
  const reply = turn.replies.find((candidate) => candidate.item === item);
  return reply === undefined ? null : { ...base, role: "agent", content: reply.text, agentId: turn.agentId };
}

/** Whether an entry puts a message into the transcript. */
export function isTranscriptEntry(entry: JournalEntry): boolean {
  return entry.type === "message.user" || (entry.type === "message.completed" && entry.data === undefined);
}

/** What a summary is made of: a turn without its content. */
export type TurnFacts = TurnRow & Pick<Turn, "status">;

export function turnSummaryView(turn: TurnFacts): TurnSummary {
  return {
    id: turnId(turn.stem, turn.n),
    status: turn.status,
    agentId: turn.agentId,
    createdAt: iso(turn.createdAt),
    completedAt: turn.completedAt === undefined ? null : iso(turn.completedAt),
    ...(turn.error === undefined ? {} : { error: wireError(turn.error) }),
    ...(Object.keys(turn.issues).length === 0 ? {} : { issues: turn.issues }),
  };
}

/** A turn's summary with the data of its answer, where it asked for data. */
export function answeredTurnView(turn: Turn): TurnSummary {
  const output = outputOf(turn);
  return { ...turnSummaryView(turn), ...defined({ output }) };
}

/** `previous` is the id of the turn before. */
export function turnView(record: ConversationIdentity, turn: Turn, previous: string | undefined): TurnView {
  const answer = finalReply(turn);
  return {
    ...answeredTurnView(turn),
    conversationId: record.id,
    caller: turn.caller,
    input: turn.input,
    userMessageId: messageId(turn.stem, turn.n, 0),
    agentMessageIds: answer === undefined ? [] : [messageId(turn.stem, turn.n, answer.item)],
    replyToMessageId: turn.replyTo ?? null,
    contextAssemblyRunId: null,
    memoryExtractionRunId: null,
    // The clock may have been set back in between.
    latencyMs: turn.completedAt === undefined ? null : Math.max(0, turn.completedAt - turn.createdAt),
    usage: turnUsage(turn),
    cost: turnCost(record.chain, turn),
    calls: callViews(record, turn, previous),
    moves: movesOf(turn),
  };
}

/** One move per tool call, or one text-only move; a reply's reasoning and raw form stand on its first. */
export function movesOf(turn: Turn): MoveView[] {
  const moves: Omit<MoveView, "sequence">[] = turn.replies.flatMap<Omit<MoveView, "sequence">>(
    (reply, index) => {
      const operations = turn.operations.filter((operation) => operation.reply === index);
      const first = {
        id: messageId(turn.stem, turn.n, reply.item),
        ...(reply.text === "" ? {} : { reasoning: reply.text }),
        raw: rawReply(reply, operations),
        createdAt: iso(reply.at),
      };
      if (operations.length === 0) return [first];
      return operations.map((operation, position) => ({
        ...(position === 0 ? first : { createdAt: iso(reply.at) }),
        id: operationId(turn.stem, turn.n, operation.item),
        ...toolParts(turn, operation),
      }));
    },
  );
  return moves.map((move, index) => ({ ...move, sequence: index + 1 }));
}

function toolParts(turn: Turn, operation: Operation): Pick<MoveView, "toolCall" | "toolResult"> {
  const { name, tool, input, client, result } = operation;
  const toolCall = {
    operationId: operationId(turn.stem, turn.n, operation.item),
    name,
    toolId: tool === null ? null : tool.library === "" ? tool.id : `${tool.library}/${tool.id}`,
    input,
    ...(client ? { client } : {}),
  };
  if (result === undefined) return { toolCall };
  const outcome = result.success
    ? { success: true, result: result.result ?? null }
    : { success: false, error: wireError(result.error) };
  return { toolCall, toolResult: outcome };
}

function rawReply(reply: Reply, operations: readonly Operation[]): Json {
  return {
    text: reply.text,
    ...defined({ reasoning: reply.reasoning }),
    toolCalls: operations.map(({ toolCallId, name, input, invalidArguments }) => ({
      id: toolCallId,
      name,
      arguments: invalidArguments ?? input,
    })),
    finishReason: reply.finishReason,
    ...(reply.usage === undefined ? {} : { usage: { ...reply.usage } }),
    ...defined({ id: reply.providerMessageId }),
  };
}

export function operationView(turn: Turn, operation: Operation): OperationView {
  const { name, input, client, result } = operation;
  const base = {
    id: operationId(turn.stem, turn.n, operation.item),
    turnId: turnId(turn.stem, turn.n),
    name,
    input,
    ...(client ? { client } : {}),
  };
  if (result === undefined) return { ...base, state: "running" };
  return result.success
    ? { ...base, state: "completed", result: result.result ?? null }
    : { ...base, state: "failed", error: wireError(result.error) };
}

export function journalEntryView(
  entry: JournalEntry,
  seq: number,
  at: number,
  turn: Pick<Turn, "stem" | "n"> | undefined,
): JournalEntryView {
  const base = {
    seq,
    type: entry.type,
    time: iso(at),
    ...defined({ data: entry.data }),
  };
  if (turn === undefined) return base;
  const { stem, n } = turn;
  const item = entry.item;
  const withTurn = { ...base, turnId: turnId(stem, n) };
  if (item === undefined) return withTurn;
  return entry.type.startsWith("tool.")
    ? { ...withTurn, operationId: operationId(stem, n, item) }
    : { ...withTurn, messageId: messageId(stem, n, item) };
}
