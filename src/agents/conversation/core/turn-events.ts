/**
 * A completed turn as session events, and back. The events own the content then; the turn's row keeps the rest.
 *
 * RECORD-1  `turnFromEvents(turnRow(t), turnEvents(t))` equals `t` for every completed turn `t`.
 * RECORD-2  A turn gives one user event, then per reply either one call request followed by one result per call, or one
 *          agent message.
 */

import { EventAction, type SessionEvent } from "../../../memory/session/types.ts";
import type { NativeReply } from "../../../model/messages.ts";
import type { FinishReason } from "../../../model/reply.ts";
import type { TokenUsage } from "../../../model/usage.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import { type Content, plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { messageId, operationId, parseItemId } from "./ids.ts";
import { finalReply, type Operation, type Reply, type Turn } from "./state.ts";

/** What a completed turn's row keeps beside its events. */
export type TurnRow = Omit<Turn, "input" | "replies" | "operations" | "call" | "repairs" | "status">;

export function turnRow(turn: Turn): TurnRow {
  const {
    input: _input,
    replies: _replies,
    operations: _operations,
    call: _call,
    repairs: _repairs,
    status: _status,
    ...rest
  } = turn;
  return rest;
}

/** How many events `turnEvents` gives. */
export function sessionEventCount(turn: Turn): number {
  return 1 + turn.replies.length + turn.operations.length;
}

/** The facts of a reply beside its text, as its event's metadata holds them. */
interface ReplyMetadata {
  origin: string;
  finishReason: FinishReason;
  reasoning?: string;
  usage?: TokenUsage;
  providerMessageId?: string;
  native?: NativeReply;
  /** Per tool call, in order: what the operation had beside name and input. */
  operations?: Pick<Operation, "tool" | "effect" | "client" | "timeoutMs" | "invalidArguments">[];
}

/** The session events of a completed turn, in order, numbered from `turn.events.from`. */
export function turnEvents(turn: Turn): SessionEvent[] {
  const from = turn.events?.from ?? 0;
  const events: SessionEvent[] = [];
  const base = (id: string, content: string, createdAt: number) => ({
    id,
    sessionId: turn.agentId,
    seq: from + events.length,
    content,
    createdAt,
  });
  const idOf = (item: number) => messageId(turn.stem, turn.n, item);
  events.push({
    ...base(idOf(0), plainText(turn.input), turn.createdAt),
    action: EventAction.USER_MESSAGE,
    metadata: {
      origin: `user:${turn.caller.userId}`,
      ...(typeof turn.input === "string" ? {} : { parts: turn.input }),
    },
  });
  turn.replies.forEach((reply, index) => {
    const operations = turn.operations.filter((operation) => operation.reply === index);
    const common = base(idOf(reply.item), reply.text, reply.at);
    const metadata = { ...replyMetadata(turn, reply, operations) };
    if (operations.length === 0) {
      events.push({ ...common, action: EventAction.AGENT_MESSAGE, metadata });
      return;
    }
    const toolCalls = operations.map(({ toolCallId, name, input }) => ({
      id: toolCallId,
      name,
      arguments: input,
    }));
    events.push({ ...common, action: EventAction.TOOL_CALL_REQUEST, toolCalls, metadata });
    for (const operation of operations) {
      const { result } = operation;
      events.push({
        ...base(
          operationId(turn.stem, turn.n, operation.item),
          JSON.stringify(result?.success ? (result.result ?? null) : (result?.error ?? null)),
          operation.completedAt ?? reply.at,
        ),
        action: EventAction.TOOL_RESULT,
        toolCallId: operation.toolCallId,
        toolName: operation.name,
        isSuccess: result?.success ?? false,
        metadata: { origin: `tool:${operation.name}` },
      });
    }
  });
  return events;
}

function replyMetadata(turn: Turn, reply: Reply, operations: readonly Operation[]): ReplyMetadata {
  return {
    origin: `agent:${turn.agentId}`,
    finishReason: reply.finishReason,
    ...defined({
      reasoning: reply.reasoning,
      usage: reply.usage,
      providerMessageId: reply.providerMessageId,
      native: reply.native,
    }),
    ...(operations.length === 0
      ? {}
      : {
          operations: operations.map(({ tool, effect, client, timeoutMs, invalidArguments }) => ({
            tool,
            effect,
            ...(client ? { client } : {}),
            timeoutMs,
            ...defined({ invalidArguments }),
          })),
        }),
  };
}

/** The completed turn that `turnSummary` and `turnEvents` were made of. */
export function turnFromEvents(summary: TurnRow, events: readonly SessionEvent[]): Turn {
  let input: Content = "";
  const replies: Reply[] = [];
  const operations: Operation[] = [];
  let drafts: ReplyMetadata["operations"] = [];
  let calls: { id: string; name: string; arguments: Record<string, unknown> }[] = [];
  for (const event of events) {
    const item = parseItemId(event.id)?.item ?? 0;
    switch (event.action) {
      case EventAction.USER_MESSAGE:
        // SAFETY: `turnEvents` wrote the parts it was given.
        input = (event.metadata?.parts as Content | undefined) ?? event.content;
        break;
      case EventAction.AGENT_MESSAGE:
      case EventAction.TOOL_CALL_REQUEST: {
        // SAFETY: `turnEvents` wrote this metadata.
        const { origin: _origin, operations: stored, ...facts } = event.metadata as unknown as ReplyMetadata;
        replies.push({ item, text: event.content, ...facts, at: event.createdAt });
        drafts = stored;
        calls = event.action === EventAction.TOOL_CALL_REQUEST ? event.toolCalls : [];
        break;
      }
      case EventAction.TOOL_RESULT: {
        const index = calls.findIndex((call) => call.id === event.toolCallId);
        const draft = drafts?.[index];
        const call = calls[index];
        if (draft === undefined || call === undefined) break;
        operations.push({
          item,
          reply: replies.length - 1,
          toolCallId: call.id,
          name: call.name,
          ...draft,
          // SAFETY: arguments were stored as a JSON object.
          input: call.arguments as JsonObject,
          result: storedResult(call.id, event.isSuccess, event.content),
          completedAt: event.createdAt,
        });
        break;
      }
      default:
    }
  }
  return { ...summary, status: "completed", input, call: null, replies, operations };
}

function storedResult(toolCallId: string, success: boolean, content: string): ToolResult {
  const value = JSON.parse(content);
  return success
    ? { tool_call_id: toolCallId, success, result: value }
    : { tool_call_id: toolCallId, success, error: value };
}

/** The data of a completed turn's answer; `undefined` where the turn wanted text. */
export function outputOf(turn: Turn): Json | undefined {
  const answer = turn.output === undefined || turn.status !== "completed" ? undefined : finalReply(turn);
  return answer === undefined ? undefined : JSON.parse(answer.text);
}
