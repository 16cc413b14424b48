/**
 * Journal entries as wire frames. Pure: the same entries and turns give the same frames, live or replayed.
 */

import { type Frame, PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import { messageId, operationId, type TurnKey, turnId } from "../../../protocol/ids.ts";
import type { WireError } from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import { isJsonObject } from "../../../shared/json.ts";
import { toIso } from "../../../shared/time.ts";
import type { JournalEntry, JournalRow } from "./journal-entry.ts";
import type { OperationTarget } from "./operation.ts";
import { issuesOf, type Turn } from "./state.ts";
import { outputOf } from "./turn-events.ts";

/** Returns a turn with its content; `undefined` if its content was erased. */
export type TurnLookup = (n: number) => Turn | undefined;

/** Returns the frames of a row's entries whose number is above `after`. */
export function framesOf(row: JournalRow, after: number, turnOf: TurnLookup): Frame[] {
  const time = toIso(row.at);
  return row.entries.flatMap((entry, index) => {
    const seq = row.seq + index;
    if (seq <= after || entry.turn === undefined) return [];
    const turn = turnOf(entry.turn);
    return turn === undefined ? [] : (frameOf(entry, turn, { v: PROTOCOL_VERSION, seq, time }) ?? []);
  });
}

/** Returns the ids that an entry names. */
export function idsOf({ type, item }: JournalEntry, turn: TurnKey) {
  const ids = { turnId: turnId(turn) };
  if (item === undefined) return ids;
  return type.startsWith("tool.")
    ? { ...ids, operationId: operationId(turn, item) }
    : { ...ids, messageId: messageId(turn, item) };
}

function frameOf(entry: JournalEntry, turn: Turn, base: { v: 1; seq: number; time: string }): Frame | null {
  const { type, item, data } = entry;
  const common = { ...base, ...idsOf(entry, turn) };
  const { agentId } = turn;
  const client = defined({ clientId: turn.clientId });
  const operation = () => turn.operations.find((candidate) => candidate.item === item);
  switch (type) {
    case "turn.started":
      return { ...common, type, data: { ...client, agentId } };
    case "turn.waiting":
      return { ...common, type, data: { reason: "client-tools" } };
    case "turn.completed":
      return { ...common, type, data: { ...issuesOf(turn), ...defined({ output: outputOf(turn) }) } };
    case "turn.failed":
      return { ...common, type, data: { error: wireError(turn.error) } };
    case "turn.finalized":
      return { ...common, type, data: { memoryExtractionStatus: "skipped" } };
    case "message.user":
      return { ...common, type, data: { ...client, content: turn.input } };
    case "message.started":
      return { ...common, type, data: { agentId } };
    case "message.reset":
      return { ...common, type, data: { reason: text(data, "reason") } };
    case "message.completed": {
      const content = turn.replies.find((reply) => reply.item === item)?.text ?? "";
      const interim = data === undefined ? {} : { interim: true as const };
      return { ...common, type, data: { agentId, content, ...interim } };
    }
    case "llm.call.failed": {
      const [code, message] = [text(data, "code"), text(data, "message")];
      return { ...common, type: "error", data: { code, message, retriable: true } };
    }
    case "tool.requested": {
      const { name = "", input = {}, target, mode } = operation() ?? {};
      return { ...common, type, data: { name, input, async: mode === "async", ...clientMark(target) } };
    }
    case "tool.completed":
      return { ...common, type, data: { result: operation()?.result?.result ?? null } };
    case "tool.failed":
      return { ...common, type, data: { error: wireError(operation()?.result?.error) } };
    case "conversation.started":
    case "turn.resumed":
    case "tool.interrupted":
      return null;
    default:
      return type satisfies never;
  }
}

/** Marks an operation that the client must run, as a member; nothing for other operations. */
export function clientMark(target: OperationTarget | undefined): { client?: true } {
  return target === "client" ? { client: true } : {};
}

/** Returns an error as clients see it. */
export function wireError(error: Pick<ErrorData, "code" | "message" | "retriable"> | undefined): WireError {
  const { code = "INTERNAL_ERROR", message = "An internal error occurred.", retriable = false } = error ?? {};
  return { code, message, retriable };
}

/** Returns a frame that is not a durable fact. */
export function ephemeralFrame<
  Type extends "message.delta" | "message.user" | "tool.progress" | "pong" | "error" | "mark",
>(
  type: Type,
  data: Extract<Frame, { type: Type }>["data"],
  ids: { turnId?: string; messageId?: string; operationId?: string },
  now: number,
): Frame {
  // SAFETY: `type` and `data` belong together by this function's own signature.
  return { v: PROTOCOL_VERSION, type, ...ids, time: toIso(now), data } as Frame;
}

function text(data: JournalEntry["data"], key: string): string {
  const value = isJsonObject(data) ? data[key] : undefined;
  return typeof value === "string" ? value : "";
}
