/**
 * Converts an ended turn to session events, and back. The events own its content. The turn's row has the rest.
 *
 * RECORD-1  `turnFromEvents(turnRow(t), turnEvents(t))` equals `t` for every turn `t` that is over.
 * RECORD-2  A turn gives one user event, then per reply either one call request followed by one result per call, or one agent message.
 *           After a turn that failed, a note tells the model so.
 * RECORD-3  The result of a background operation is an event of its own, before the reply of the cycle that got it. The result beside the
 *           call says that the operation is pending.
 */
import { outcomeOf } from "../../../memory/session/outcome.ts";
import { EventAction, type SessionEvent } from "../../../memory/session/session-event.ts";
import { joinTaints, type Taint, taintMember } from "../../../model/taint.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import { messageId, operationId, parseItemId } from "../../../protocol/ids.ts";
import { type Content, plainText } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { cut } from "../../../shared/text.ts";
import { originOf } from "./caller.ts";
import {
  type Operation,
  packOperation,
  type StoredOperation,
  statusOf,
  unpackOperation,
} from "./operation.ts";
import { taintOfMessage, taintOfResult } from "./taints.ts";
import type { Reply, Turn } from "./turn.ts";
import { finalReply, operationsOf } from "./turn-operations.ts";

/** The members of an ended turn that its row keeps. Its content is in session events. */
export type TurnRow = Omit<RecordedTurn, "input" | "replies" | "operations" | "call" | "repairs" | "paused">;

/** An ended turn with its content in the session's events. */
export type RecordedTurn = Turn & { readonly events: NonNullable<Turn["events"]> };

/** Reports whether the content of a turn is in its session's events. */
export function isRecorded(turn: Turn): turn is RecordedTurn {
  return turn.events !== undefined;
}

export function turnRow(turn: RecordedTurn): TurnRow {
  const {
    input: _input,
    replies: _replies,
    operations: _operations,
    call: _call,
    repairs: _repairs,
    paused: _paused,
    ...rest
  } = turn;
  return rest;
}

/** Returns the number of events that `turnEvents` gives. */
export function sessionEventCount({ status, replies, operations }: Turn): number {
  const outcomes = operations.filter(({ mode }) => mode === "async").length;
  return 1 + replies.length + operations.length + outcomes + (status === "failed" ? 1 : 0);
}

/** The prefix of the id of an event beside a call that runs in the background. The result's event has the operation's id. */
const PENDING = "pending_";

/** The members of an operation that the metadata of its reply's event keeps. */
type EventOperation = Pick<
  StoredOperation,
  | "tool"
  | "effect"
  | "target"
  | "agent"
  | "mode"
  | "status"
  | "approval"
  | "policy"
  | "task"
  | "attempt"
  | "timeoutMs"
  | "invalidArguments"
  | "delivered"
>;

/** The metadata of a reply's event: the reply without its text, and its operations in order. */
interface ReplyMetadata extends Omit<Reply, "item" | "text" | "at"> {
  origin: string;
  operations?: EventOperation[];
}

/** Returns the event of a turn's message, without its number. */
export function messageEvent(turn: Turn): SessionEvent {
  return {
    id: messageId(turn, 0),
    sessionId: turn.agentId,
    seq: 0,
    content: plainText(turn.input),
    timestamp: turn.createdAt,
    action: EventAction.USER_MESSAGE,
    metadata: {
      origin: originOf(turn.caller),
      ...(typeof turn.input === "string" ? {} : { parts: turn.input }),
      ...taintMember(taintOfMessage(turn)),
    },
  };
}

/** The events of turns that are over: the store takes them first, then the window of the session. */
const eventsOfTurns = new WeakMap<Turn, SessionEvent[]>();

/** Returns the session events of a turn that is over, in order, numbered from `turn.events.from`. */
export function turnEvents(turn: Turn): SessionEvent[] {
  const known = eventsOfTurns.get(turn);
  if (known !== undefined) return known;
  const from = turn.events?.from ?? 0;
  const events = [
    messageEvent(turn),
    ...turn.replies.flatMap((_, index) => [
      ...outcomeEvents(turn, index),
      replyEvent(turn, index),
      ...operationsOf(turn, index).map((operation) => resultEvent(turn, operation)),
    ]),
    ...outcomeEvents(turn, turn.replies.length),
    ...outcomeEvents(turn, undefined),
    ...(turn.status === "failed" ? [failureEvent(turn)] : []),
  ];
  const numbered = events.map((event, index) => ({ ...event, seq: from + index }));
  eventsOfTurns.set(turn, numbered);
  return numbered;
}

/** Length of an error's message in the note to the model, in UTF-16 units. */
const MAX_NOTED = 500;

/** Returns the note that tells the model how a turn without an answer ended, without its number. */
function failureEvent(turn: Turn): SessionEvent {
  const { error, completedAt, items } = turn;
  const message = cut(error?.message ?? "", MAX_NOTED);
  const content =
    error?.code === "CANCELLED"
      ? `This turn has no answer. ${message} What was shown of it is above.`
      : `This turn failed before its answer: ${message}`;
  return {
    id: messageId(turn, items),
    sessionId: turn.agentId,
    seq: 0,
    content,
    timestamp: completedAt ?? turn.createdAt,
    action: EventAction.SYSTEM_INSTRUCTION,
    metadata: { origin: "platform", taint: taintOfFailure(turn) },
  };
}

/** Returns the taint of a failure's message: a hook or a model may have quoted its request. */
function taintOfFailure({ error, taint }: Turn): Taint {
  if (error?.code === "CANCELLED") return [];
  return joinTaints(taint, error?.code === "CONTEXT_ASSEMBLY_FAILED" ? ["tool"] : []);
}

/** Length of a late result in the note to the model, as JSON. */
const MAX_NOTED_RESULT = 8_192;

/** Returns the note that tells the model of a result that came after its turn was over. */
export function lateResultEvent(
  {
    sessionId,
    seq,
    operationId,
    name,
    result,
  }: { sessionId: string; seq: number; operationId: string; name: string; result: ToolResult },
  now: number,
): SessionEvent {
  const json = JSON.stringify(result.result ?? null);
  const text = json.length <= MAX_NOTED_RESULT ? json : `${cut(json, MAX_NOTED_RESULT)}…`;
  return {
    id: `late_${operationId}`,
    sessionId,
    seq,
    content: `"${name}" was stopped with an unknown outcome before. It went on, and it took effect. Its result: ${text}`,
    timestamp: now,
    action: EventAction.SYSTEM_INSTRUCTION,
    metadata: { origin: "platform" },
  };
}

export function replyEvent(turn: Turn, index: number): SessionEvent {
  const reply = turn.replies[index];
  if (reply === undefined) throw new Error(`The turn has no reply ${index}.`);
  const operations = operationsOf(turn, index);
  const common = {
    id: messageId(turn, reply.item),
    sessionId: turn.agentId,
    seq: 0,
    content: reply.text,
    timestamp: reply.at,
    metadata: { ...replyMetadata(turn, reply, operations) },
  };
  if (operations.length === 0) return { ...common, action: EventAction.AGENT_MESSAGE };
  const toolCalls = operations.map(({ toolCallId: id, name, input }) => ({ id, name, arguments: input }));
  return { ...common, action: EventAction.TOOL_CALL_REQUEST, toolCalls };
}

/** Returns the event of an operation's result, without its number; for a background operation, that it is pending. */
export function resultEvent(turn: Turn, operation: Operation): SessionEvent {
  const { item, reply, toolCallId, name, mode, result, completedAt } = operation;
  const id = operationId(turn, item);
  const repliedAt = turn.replies[reply]?.at ?? turn.createdAt;
  const common = {
    sessionId: turn.agentId,
    seq: 0,
    action: EventAction.TOOL_RESULT,
    toolCallId,
    toolName: name,
  } as const;
  const metadata = resultMetadata(name, mode === "async" ? [] : taintOfResult(operation));
  if (mode === "async") {
    const content = JSON.stringify({ status: "pending", operation_id: id });
    return { ...common, metadata, id: `${PENDING}${id}`, content, timestamp: repliedAt, isSuccess: true };
  }
  const isSuccess = result?.success ?? false;
  const content = JSON.stringify((isSuccess ? result?.result : result?.error) ?? null);
  return { ...common, metadata, id, content, timestamp: completedAt ?? repliedAt, isSuccess };
}

/** Returns the metadata of a result's event. `tool` is the taint of an event without one. */
function resultMetadata(name: string, taint: Taint): { origin: string; taint?: Taint } {
  const isUsual = taint.length === 1 && taint[0] === "tool";
  return { origin: `tool:${name}`, ...(isUsual ? {} : { taint }) };
}

/** Returns the events of the results for the cycle after `replies` replies; if `undefined`, of results without a cycle. */
function outcomeEvents(turn: Turn, replies: number | undefined): SessionEvent[] {
  return outcomesAt(turn, replies).map((operation) => outcomeEvent(turn, operation));
}

/** Returns the background operations with results for the cycle after `replies` replies. */
export function outcomesAt(
  { operations }: Pick<Turn, "operations">,
  replies: number | undefined,
): Operation[] {
  return operations.filter(
    ({ mode, result, delivered }) => mode === "async" && result !== undefined && delivered === replies,
  );
}

/** Returns the event of a background operation's result, without its number. */
export function outcomeEvent(turn: Turn, operation: Operation): SessionEvent {
  const { item, name, result, completedAt } = operation;
  const id = operationId(turn, item);
  const isSuccess = result?.success ?? false;
  return {
    id,
    sessionId: turn.agentId,
    seq: 0,
    content: JSON.stringify((isSuccess ? result?.result : result?.error) ?? null),
    timestamp: completedAt ?? turn.createdAt,
    action: EventAction.SYSTEM_INSTRUCTION,
    metadata: { ...resultMetadata(name, taintOfResult(operation)), operation: { id, name, isSuccess } },
  };
}

function replyMetadata({ agentId }: Turn, reply: Reply, operations: readonly Operation[]): ReplyMetadata {
  const { item: _item, text: _text, at, ...facts } = reply;
  const stored = operations.map((operation): EventOperation => {
    const packed = packOperation(operation, at);
    const { tool, effect, target, agent, mode, status, approval, attempt, task, timeoutMs } = packed;
    const { policy, invalidArguments, delivered } = packed;
    return {
      tool,
      effect,
      ...defined({ target, agent, mode, status, policy, approval, attempt, task }),
      timeoutMs,
      ...defined({ invalidArguments, delivered }),
    };
  });
  return { origin: `agent:${agentId}`, ...facts, ...(stored.length === 0 ? {} : { operations: stored }) };
}

/** Restores a completed turn from its row and its events. */
export function turnFromEvents(row: TurnRow, events: readonly SessionEvent[]): Turn {
  let input: Content = "";
  const replies: Reply[] = [];
  const operations: Operation[] = [];
  let stored: EventOperation[] = [];
  let calls: { id: string; name: string; arguments: Record<string, unknown> }[] = [];
  for (const event of events) {
    const item = parseItemId(event.id)?.item ?? 0;
    switch (event.action) {
      case EventAction.USER_MESSAGE:
        // SAFETY: `turnEvents` wrote the parts.
        input = (event.metadata?.parts as Content | undefined) ?? event.content;
        break;
      case EventAction.AGENT_MESSAGE:
      case EventAction.TOOL_CALL_REQUEST: {
        // SAFETY: `turnEvents` wrote this metadata.
        const metadata = event.metadata as unknown as ReplyMetadata;
        const { origin: _origin, operations: ofReply = [], ...facts } = metadata;
        replies.push({ item, text: event.content, ...facts, at: event.timestamp });
        stored = ofReply;
        calls = event.action === EventAction.TOOL_CALL_REQUEST ? event.toolCalls : [];
        break;
      }
      case EventAction.TOOL_RESULT: {
        const index = calls.findIndex((call) => call.id === event.toolCallId);
        const [operation, call] = [stored[index], calls[index]];
        if (operation === undefined || call === undefined) break;
        const isPending = operation.mode === "async";
        const restored = {
          item: isPending ? (parseItemId(event.id.replace(PENDING, ""))?.item ?? 0) : item,
          reply: replies.length - 1,
          toolCallId: call.id,
          name: call.name,
          ...operation,
          // SAFETY: arguments were stored as a JSON object.
          input: call.arguments as JsonObject,
          ...(isPending
            ? {}
            : {
                result: storedResult(call.id, event.isSuccess, event.content),
                completedAt: event.timestamp,
              }),
        };
        operations.push(unpackOperation(restored, undefined));
        break;
      }
      case EventAction.SYSTEM_INSTRUCTION: {
        const at = operations.findIndex((operation) => operation.item === item && operation.mode === "async");
        const [operation, outcome] = [operations[at], outcomeOf(event.metadata)];
        if (operation === undefined || outcome === null) break;
        const result = storedResult(operation.toolCallId, outcome.isSuccess, event.content);
        const { status: stored } = operation;
        const status = stored === "pending" ? statusOf(result) : stored;
        operations[at] = { ...operation, status, result, completedAt: event.timestamp };
        break;
      }
      default:
    }
  }
  // An operation with an erased result is hidden.
  return {
    ...row,
    input,
    call: null,
    replies,
    operations: operations.filter(({ result }) => result !== undefined),
  };
}

function storedResult(toolCallId: string, success: boolean, content: string): ToolResult {
  const value = JSON.parse(content);
  return { tool_call_id: toolCallId, success, ...(success ? { result: value } : { error: value }) };
}

/** Returns the data of a completed turn's answer; `undefined` if the turn's answer is text. */
export function outputOf(turn: Turn): Json | undefined {
  const answer = turn.output === undefined || turn.status !== "completed" ? undefined : finalReply(turn);
  return answer === undefined || turn.erased?.includes(answer.item) ? undefined : JSON.parse(answer.text);
}
