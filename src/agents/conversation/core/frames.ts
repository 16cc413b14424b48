/**
 * Journal entries as wire frames. Pure: the same log and turns give the same frames, live or replayed.
 */

import { type Frame, PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import type { WireError } from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { messageId, operationId, turnId } from "./ids.ts";
import type { JournalEntry, JournalRow } from "./journal-entry.ts";
import type { Turn } from "./state.ts";
import { outputOf } from "./turn-events.ts";

/** Finds a turn with its content; `undefined` if its content was erased. */
export type TurnLookup = (n: number) => Turn | undefined;

/** The frames of a row's entries whose number is above `after`. */
export function framesOf(row: JournalRow, after: number, turnOf: TurnLookup): Frame[] {
  const time = new Date(row.at).toISOString();
  return row.entries.flatMap((entry, index) => {
    const seq = row.seq + index;
    if (seq <= after || entry.turn === undefined) return [];
    const turn = turnOf(entry.turn);
    const frame = turn === undefined ? null : frameOf(entry, turn, { v: PROTOCOL_VERSION, seq, time });
    return frame === null ? [] : [frame];
  });
}

function frameOf(entry: JournalEntry, turn: Turn, base: { v: 1; seq: number; time: string }): Frame | null {
  const item = entry.item ?? 0;
  const common = { ...base, turnId: turnId(turn.stem, turn.n) };
  const message = { ...common, messageId: messageId(turn.stem, turn.n, item) };
  const operation = { ...common, operationId: operationId(turn.stem, turn.n, item) };
  const { agentId } = turn;
  const client = turn.clientId === undefined ? {} : { clientId: turn.clientId };
  switch (entry.type) {
    case "turn.started":
      return { ...common, type: "turn.started", data: { ...client, agentId } };
    case "turn.waiting":
      return { ...common, type: "turn.waiting", data: { reason: "client-tools" } };
    case "turn.completed": {
      const issues = Object.keys(turn.issues).length > 0 ? { issues: turn.issues } : {};
      const output = outputOf(turn);
      const data = { ...issues, ...defined({ output }) };
      return { ...common, type: "turn.completed", data };
    }
    case "turn.failed":
      return { ...common, type: "turn.failed", data: { error: wireError(turn.error) } };
    case "turn.finalized":
      return { ...common, type: "turn.finalized", data: { memoryExtractionStatus: "skipped" } };
    case "message.user":
      return { ...message, type: "message.user", data: { ...client, content: turn.input } };
    case "message.started":
      return { ...message, type: "message.started", data: { agentId } };
    case "message.reset":
      return { ...message, type: "message.reset", data: { reason: text(entry.data, "reason") } };
    case "message.completed": {
      const content = turn.replies.find((reply) => reply.item === item)?.text ?? "";
      const interim = entry.data === undefined ? {} : { interim: true as const };
      return { ...message, type: "message.completed", data: { agentId, content, ...interim } };
    }
    case "llm.call.failed": {
      const data = { code: text(entry.data, "code"), message: text(entry.data, "message"), retriable: true };
      return { ...message, type: "error", data };
    }
    case "tool.requested": {
      const called = turn.operations.find((candidate) => candidate.item === item);
      const { name = "", input = {} } = called ?? {};
      const ran = called?.client ? { client: true as const } : {};
      return { ...operation, type: "tool.requested", data: { name, input, async: false, ...ran } };
    }
    case "tool.completed":
    case "tool.failed": {
      const result = turn.operations.find((candidate) => candidate.item === item)?.result;
      if (entry.type === "tool.completed") {
        return { ...operation, type: "tool.completed", data: { result: result?.result ?? null } };
      }
      return { ...operation, type: "tool.failed", data: { error: wireError(result?.error) } };
    }
    case "conversation.started":
    case "turn.resumed":
      return null;
    default:
      return entry.type satisfies never;
  }
}

/** An error as clients see it. */
export function wireError(error: Pick<ErrorData, "code" | "message" | "retriable"> | undefined): WireError {
  const { code = "INTERNAL_ERROR", message = "An internal error occurred.", retriable = false } = error ?? {};
  return { code, message, retriable };
}

/** Whether a frame is the last of its turn's stream. */
export function endsTurn(frame: Frame): boolean {
  return frame.type === "turn.completed" || frame.type === "turn.failed";
}

/** A frame that is no durable fact. */
export function ephemeralFrame<
  Type extends "message.delta" | "message.user" | "tool.progress" | "pong" | "error",
>(
  type: Type,
  data: Extract<Frame, { type: Type }>["data"],
  ids: { turnId?: string; messageId?: string; operationId?: string },
  now: number,
): Frame {
  // SAFETY: `type` and `data` belong together by this function's own signature.
  return { v: PROTOCOL_VERSION, type, ...ids, time: new Date(now).toISOString(), data } as Frame;
}

function text(data: Json | undefined, key: string): string {
  const value = isJsonObject(data) ? data[key] : undefined;
  return typeof value === "string" ? value : "";
}
