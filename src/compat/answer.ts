/**
 * The answers of a turn, for clients of protocols without conversations: texts, and calls of tools that the client runs.
 * Pure. An answer ends when the turn waits for such calls. Their results start the next answer, so a turn is a list of answers.
 *
 * ANSWER-1  The answers of a turn are the same live, replayed, and as `answerOf` reads them from the finished turn.
 * ANSWER-2  An answer omits the calls and results of the agent's own tools.
 * ANSWER-3  The answer of a turn that was stopped is `cancelled`. It has the text that was shown, unless it must be one JSON
 *           value.
 */
import type { TurnView } from "../protocol/conversation-schemas.ts";
import { endsTurn, type Frame } from "../protocol/frames.ts";
import type { MoveView, WireError } from "../protocol/move-schemas.ts";
import type { TurnUsage } from "../protocol/usage-schemas.ts";
import { defined } from "../shared/defined.ts";
import { isJsonObject, type JsonObject } from "../shared/json.ts";
import { type Piece, SentText } from "./sent-text.ts";

/** A call of a tool that the client runs. */
export interface ClientCall {
  operationId: string;
  name: string;
  input: unknown;
}

export interface AnswerOptions {
  /** Position among the turn's answers, from 0. */
  index: number;
  /**
   * Omits interim and stopped messages, and gives the last message only when it is complete: the answer must be one JSON
   * value.
   */
  finalOnly: boolean;
}

export interface AnswerMessage {
  content: string;
  /** Text of a reply with tool calls. */
  isInterim: boolean;
  /** The turn ended while the message streamed. */
  isStopped: boolean;
}

/** One answer of a turn, so far. */
export interface TurnAnswer {
  status: "in_progress" | "completed" | "failed" | "cancelled";
  messages: AnswerMessage[];
  calls: ClientCall[];
  /** The `FinishReason` of the model's last reply. */
  finishReason: string;
  /** Tokens of the model calls of this answer; `null` if no provider counted. */
  usage: AnswerUsage | null;
  /** Time of the model's last reply; `null` without a reply. */
  completedAt: string | null;
  error?: WireError;
}

export type AnswerUsage = Required<Omit<TurnUsage, "cacheWriteTokens">>;

export type AnswerEvent =
  /** More text of a message; never empty. */
  | { type: "text"; messageId: string; text: string }
  /** A message is complete. Messages without text have no event. */
  | ({ type: "message"; messageId: string } & AnswerMessage)
  | { type: "call"; call: ClientCall }
  /** The answer is complete: the turn has ended, or waits for the client's calls. */
  | { type: "end" }
  | { type: "failed"; error: WireError };

export interface AnswerEncoder<Payload> {
  start(): readonly Payload[];
  push(event: AnswerEvent): readonly Payload[];
  /** The answer is complete, or its turn has failed. */
  end(answer: TurnAnswer): readonly Payload[];
  /** The stream ends before the answer is complete. */
  fail(error: Pick<WireError, "code" | "message">): readonly Payload[];
}

export const REPLY_RESTARTED: WireError = {
  code: "REPLY_RESTARTED",
  message:
    "The model was called again, and its new reply differs from the text already sent. Send the request again with the same idempotency key, or read the finished answer.",
  retriable: true,
};

/** Reads one answer of a turn from the frames of the turn. Give it all frames, from the first. */
export class AnswerReader {
  #index = 0;
  #calls: ClientCall[] = [];
  #message: { id: string; text: SentText } | null = null;
  #isOver = false;

  constructor(private readonly options: AnswerOptions) {}

  get isOver(): boolean {
    return this.#isOver;
  }

  push(frame: Frame): AnswerEvent[] {
    if (this.#isOver) return [];
    const events = this.#events(frame);
    const isPast = this.#index < this.options.index;
    if (events.some(({ type }) => type === "call")) {
      this.#index += 1;
      this.#calls = [];
    }
    if (isPast && !endsTurn(frame)) return [];
    this.#isOver = events.some(({ type }) => type === "end" || type === "failed");
    return events;
  }

  #events(frame: Frame): AnswerEvent[] {
    const { messageId = "", operationId = "" } = frame;
    switch (frame.type) {
      case "message.delta": {
        if (this.options.finalOnly) return [];
        const { offset, text } = frame.data;
        return this.#text(messageId, this.#textOf(messageId).add(offset, text));
      }
      case "message.reset":
        this.#textOf(messageId).reset();
        return [];
      case "message.completed": {
        const { content, interim = false, stopped = false } = frame.data;
        if (this.options.finalOnly && (interim || stopped)) return [];
        const rest = this.#text(messageId, this.#textOf(messageId).complete(content));
        if (content === "" || rest.some(({ type }) => type === "failed")) return rest;
        return [...rest, { type: "message", messageId, content, isInterim: interim, isStopped: stopped }];
      }
      case "tool.requested": {
        const { name, input, client = false } = frame.data;
        if (client) this.#calls.push({ operationId, name, input });
        return [];
      }
      // Results of the agent's own tools are missing, so the answer is not complete.
      case "turn.waiting":
        return frame.data.reason === "client-tools" ? this.#handOver() : [];
      // The turn does not wait if the client's results arrive before the results of the agent's own tools.
      case "message.started":
        return this.#handOver();
      case "turn.completed":
        return [{ type: "end" }];
      case "turn.failed":
        return [{ type: "failed", error: frame.data.error }];
      default:
        return [];
    }
  }

  /** Ends the answer with the calls of the client's tools, if there are any. */
  #handOver(): AnswerEvent[] {
    const calls = this.#calls.map((call) => ({ type: "call" as const, call }));
    return calls.length === 0 ? [] : [...calls, { type: "end" }];
  }

  #textOf(messageId: string): SentText {
    if (this.#message?.id !== messageId) this.#message = { id: messageId, text: new SentText() };
    return this.#message.text;
  }

  #text(messageId: string, piece: Piece): AnswerEvent[] {
    if (piece === null) return [{ type: "failed", error: REPLY_RESTARTED }];
    return piece === "" ? [] : [{ type: "text", messageId, text: piece }];
  }
}

type Reply = readonly MoveView[];

/** Reads an answer from its turn. Returns `null` for an answer that has not begun. */
export function answerOf(turn: TurnView, { index, finalOnly }: AnswerOptions): TurnAnswer | null {
  const replies = answersOf(turn)[index];
  if (replies === undefined) return null;
  const last = replies.at(-1) ?? [];
  const calls = clientCalls(last);
  const isWaiting = calls.length > 0 && last.every((move) => move.toolCall?.client || hasResult(turn, move));
  const status = isWaiting ? "completed" : statusOf(turn);
  return {
    status,
    messages: replies.flatMap(messageOf).filter((message) => {
      return !finalOnly || !(message.isInterim || message.isStopped);
    }),
    calls: status === "completed" ? calls : [],
    finishReason: String(rawOf(last).finishReason ?? "stop"),
    usage: usageOf(replies),
    completedAt: last[0]?.createdAt ?? null,
    ...(status === "failed" || status === "cancelled" ? defined({ error: turn.error }) : {}),
  };
}

function statusOf({ status, error }: TurnView): TurnAnswer["status"] {
  if (status === "active") return "in_progress";
  return status === "failed" && error?.code === "CANCELLED" ? "cancelled" : status;
}

/** Reports whether a call had a result before its turn ended. */
function hasResult({ status }: TurnView, { toolResult }: MoveView): boolean {
  return toolResult !== undefined && !(status === "failed" && toolResult.error?.code === "CANCELLED");
}

/** Finds the answer with a client's call: its index, and all its calls. Returns `null` for other operations. */
export function answerWithCall(
  turn: TurnView,
  operationId: string,
): { index: number; operationIds: string[] } | null {
  for (const [index, replies] of answersOf(turn).entries()) {
    const operationIds = clientCalls(replies.at(-1) ?? []).map((call) => call.operationId);
    if (operationIds.includes(operationId)) return { index, operationIds };
  }
  return null;
}

/** Counts the answers of a turn, including one in progress. */
export function answerCount(turn: TurnView): number {
  return answersOf(turn).length;
}

/** Groups the replies of the model by answer. A reply that calls the client's tools is the last of its answer. */
function answersOf(turn: TurnView): Reply[][] {
  const answers: Reply[][] = [[]];
  for (const reply of repliesOf(turn.moves)) {
    answers.at(-1)?.push(reply);
    if (clientCalls(reply).length > 0) answers.push([]);
  }
  return answers;
}

function repliesOf(moves: readonly MoveView[]): Reply[] {
  const replies: MoveView[][] = [];
  for (const move of moves) {
    if (move.raw !== undefined || replies.length === 0) replies.push([]);
    replies.at(-1)?.push(move);
  }
  return replies;
}

function clientCalls(reply: Reply): ClientCall[] {
  return reply.flatMap(({ toolCall }) => {
    if (toolCall?.client !== true) return [];
    const { operationId, name, input } = toolCall;
    return [{ operationId, name, input }];
  });
}

function messageOf(reply: Reply): TurnAnswer["messages"] {
  const { text, stopped } = rawOf(reply);
  if (typeof text !== "string" || text === "") return [];
  return [{ content: text, isInterim: reply[0]?.toolCall !== undefined, isStopped: stopped === true }];
}

function rawOf(reply: Reply): JsonObject {
  const raw = reply[0]?.raw;
  return isJsonObject(raw) ? raw : {};
}

function usageOf(replies: readonly Reply[]): AnswerUsage | null {
  const counted = replies.map((reply) => rawOf(reply).usage).filter(isJsonObject);
  if (counted.length === 0) return null;
  const sum = (key: keyof AnswerUsage) =>
    counted.reduce((total, usage) => total + (typeof usage[key] === "number" ? usage[key] : 0), 0);
  return {
    inputTokens: sum("inputTokens"),
    cachedInputTokens: sum("cachedInputTokens"),
    outputTokens: sum("outputTokens"),
    reasoningTokens: sum("reasoningTokens"),
  };
}
