/**
 * What a turn says to a client of a protocol without conversations: its text, and the calls of tools that the client runs.
 * Pure. Where the turn waits for such calls, an answer ends and another one follows, so a turn is a list of answers.
 *
 * ANSWER-1  The answers of a turn are the same live and replayed, and the same as `partOf` finds in the finished turn.
 * ANSWER-2  The agent's own tools are its own business: an answer says nothing of them.
 */

import type { Frame } from "../protocol/frames.ts";
import type { MoveView, TurnView, WireError } from "../protocol/views.ts";
import { isJsonObject, type JsonObject } from "../shared/json.ts";
import { type Piece, SentText } from "./sent-text.ts";

/** A tool call that the client is to run. */
export interface ClientCall {
  operationId: string;
  name: string;
  input: unknown;
}

export type AnswerEvent =
  /** More of a message; never empty. */
  | { type: "text"; messageId: string; text: string }
  /** A message is whole. Of one without text nothing is said. */
  | { type: "message"; messageId: string; content: string; isInterim: boolean }
  | { type: "call"; call: ClientCall }
  /** The answer is complete: the turn has ended, or waits for the client's calls. */
  | { type: "end" }
  | { type: "failed"; error: WireError };

export const REPLY_RESTARTED: WireError = {
  code: "REPLY_RESTARTED",
  message:
    "The reply was made anew and reads differently from what was sent. Ask again with the same idempotency key, or read the finished answer.",
  retriable: true,
};

export interface AnswerOptions {
  /** Which of the turn's answers, from 0. */
  part: number;
  /** Says a message only when it is whole and the answer's last: what must be read as one value cannot come with notes. */
  finalOnly: boolean;
}

/** Reads one answer of a turn from the turn's frames, from its first. */
export class AnswerReader {
  readonly #options: AnswerOptions;
  #part = 0;
  #calls: ClientCall[] = [];
  #message: { id: string; text: SentText } | null = null;
  #isOver = false;

  constructor(options: AnswerOptions) {
    this.#options = options;
  }

  /** Whether nothing more comes. */
  get isOver(): boolean {
    return this.#isOver;
  }

  push(frame: Frame): AnswerEvent[] {
    if (this.#isOver) return [];
    const events = this.#events(frame);
    const isPast = this.#part < this.#options.part;
    if (events.some(({ type }) => type === "call")) {
      this.#part += 1;
      this.#calls = [];
    }
    const isTurnOver = frame.type === "turn.failed" || frame.type === "turn.completed";
    if (isPast && !isTurnOver) return [];
    this.#isOver = events.some(({ type }) => type === "end" || type === "failed");
    return events;
  }

  #events(frame: Frame): AnswerEvent[] {
    const { messageId = "", operationId = "" } = frame;
    switch (frame.type) {
      case "message.delta": {
        if (this.#options.finalOnly) return [];
        const { offset, text } = frame.data;
        return this.#say(messageId, this.#textOf(messageId).add(offset, text));
      }
      case "message.reset":
        this.#textOf(messageId).reset();
        return [];
      case "message.completed": {
        const { content, interim = false } = frame.data;
        if (this.#options.finalOnly && interim) return [];
        const said = this.#say(messageId, this.#textOf(messageId).complete(content));
        if (content === "" || said.some(({ type }) => type === "failed")) return said;
        return [...said, { type: "message", messageId, content, isInterim: interim }];
      }
      case "tool.requested": {
        const { name, input, client = false } = frame.data;
        if (client) this.#calls.push({ operationId, name, input });
        return [];
      }
      // Where the client's results came before the agent's own, the turn goes on without having waited.
      case "message.started":
      case "turn.waiting": {
        const calls = this.#calls.map((call) => ({ type: "call" as const, call }));
        return calls.length === 0 ? [] : [...calls, { type: "end" }];
      }
      case "turn.completed":
        return [{ type: "end" }];
      case "turn.failed":
        return [{ type: "failed", error: frame.data.error }];
      default:
        return [];
    }
  }

  #textOf(messageId: string): SentText {
    if (this.#message?.id !== messageId) this.#message = { id: messageId, text: new SentText() };
    return this.#message.text;
  }

  #say(messageId: string, piece: Piece): AnswerEvent[] {
    if (piece === null) return [{ type: "failed", error: REPLY_RESTARTED }];
    return piece === "" ? [] : [{ type: "text", messageId, text: piece }];
  }
}

/** One answer of a turn, as far as it has got. */
export interface AnswerPart {
  status: "in_progress" | "completed" | "failed";
  messages: { content: string; isInterim: boolean }[];
  calls: ClientCall[];
  /** Why the model ended its last reply, in the neutral words of `FinishReason`. */
  finishReason: string;
  /** Tokens of the model calls that this answer took; `null` if no provider counted. */
  usage: PartUsage | null;
  error?: WireError;
}

export interface PartUsage {
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  reasoningTokens: number;
}

/** One reply of the model: its moves. */
type ReplyMoves = readonly MoveView[];

/** The answer number `part` of a turn, from 0; `null` where the turn has not got so far. */
export function partOf(turn: TurnView, { part, finalOnly }: AnswerOptions): AnswerPart | null {
  const replies = partsOf(turn)[part];
  if (replies === undefined) return null;
  const last = replies.at(-1) ?? [];
  const calls = clientCalls(last);
  const messages = replies.flatMap((moves) => messageOf(moves));
  const isWaiting =
    calls.length > 0 && last.every(({ toolCall, toolResult }) => toolCall?.client || toolResult);
  const status = isWaiting ? "completed" : turn.status === "active" ? "in_progress" : turn.status;
  return {
    status,
    messages: messages.filter(({ isInterim }) => !isInterim || !finalOnly),
    calls: status === "completed" ? calls : [],
    finishReason: String(rawOf(last).finishReason ?? "stop"),
    usage: usageOf(replies),
    ...(status === "failed" && turn.error !== undefined ? { error: turn.error } : {}),
  };
}

/** Which answer of the turn follows on an operation's result; `null` for one that is not the client's. */
export function partAfter(turn: TurnView, operationId: string): number | null {
  const index = partsOf(turn).findIndex((replies) => callsOf(replies).includes(operationId));
  return index === -1 ? null : index + 1;
}

/** The calls that must be answered together with this one. */
export function callsBeside(turn: TurnView, operationId: string): string[] {
  return (
    partsOf(turn)
      .map(callsOf)
      .find((calls) => calls.includes(operationId)) ?? []
  );
}

/** How many answers a turn has given or is giving. */
export function partCount(turn: TurnView): number {
  return partsOf(turn).length;
}

function callsOf(replies: readonly ReplyMoves[]): string[] {
  return clientCalls(replies.at(-1) ?? []).map(({ operationId }) => operationId);
}

/** Replies of the model by the answer that they belong to; one that calls the client's tools is its answer's last. */
function partsOf(turn: TurnView): ReplyMoves[][] {
  const parts: ReplyMoves[][] = [[]];
  for (const moves of repliesOf(turn.moves)) {
    parts.at(-1)?.push(moves);
    if (clientCalls(moves).length > 0) parts.push([]);
  }
  return parts;
}

function repliesOf(moves: readonly MoveView[]): MoveView[][] {
  const replies: MoveView[][] = [];
  for (const move of moves) {
    if (move.raw !== undefined || replies.length === 0) replies.push([]);
    replies.at(-1)?.push(move);
  }
  return replies;
}

function clientCalls(moves: ReplyMoves): ClientCall[] {
  return moves.flatMap(({ toolCall }) => {
    if (toolCall?.client !== true) return [];
    const { operationId, name, input } = toolCall;
    return [{ operationId, name, input }];
  });
}

function messageOf(moves: ReplyMoves): AnswerPart["messages"] {
  const [first] = moves;
  const { text } = rawOf(moves);
  if (first === undefined || typeof text !== "string" || text === "") return [];
  return [{ content: text, isInterim: first.toolCall !== undefined }];
}

function rawOf(moves: ReplyMoves): JsonObject {
  const raw = moves[0]?.raw;
  return isJsonObject(raw) ? raw : {};
}

function usageOf(replies: readonly ReplyMoves[]): PartUsage | null {
  const counted = replies.map((moves) => rawOf(moves).usage).filter(isJsonObject);
  if (counted.length === 0) return null;
  const sum = (key: keyof PartUsage) =>
    counted.reduce((total, usage) => total + (typeof usage[key] === "number" ? usage[key] : 0), 0);
  return {
    inputTokens: sum("inputTokens"),
    cachedInputTokens: sum("cachedInputTokens"),
    outputTokens: sum("outputTokens"),
    reasoningTokens: sum("reasoningTokens"),
  };
}
