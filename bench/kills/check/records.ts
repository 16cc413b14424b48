/** A history, grouped by conversation and turn. */
import type { Frame } from "../../../src/client/index.ts";
import type { FinalState, History, Hit, SentMessage } from "../history.ts";

export interface Violation {
  /** Number of the violated rule. */
  rule: string;
  conversation: string;
  what: string;
}

/** A recorded turn with its messages, frames and hits. */
export interface TurnRecord {
  turnId: string;
  /** The message that the turn answers; `undefined` if no user sent it. */
  message: SentMessage | undefined;
  /** Durable frames, in order. */
  frames: Frame[];
  hits: Hit[];
  /** Number of resumptions after a crash. */
  resumed: number;
  /** Milliseconds since the epoch; infinite while the turn is active. */
  startedAt: number;
  endedAt: number;
}

export interface ConversationRecord {
  id: string;
  final: FinalState;
  messages: SentMessage[];
  turns: TurnRecord[];
}

export function recordsOf(history: History): ConversationRecord[] {
  return history.finals.map((final) => {
    const id = final.conversation;
    const messages = history.messages.filter(({ conversation }) => conversation === id);
    const turnIds = final.frames.flatMap(({ type, turnId }) =>
      type === "turn.started" && turnId !== undefined ? [turnId] : [],
    );
    return {
      id,
      final,
      messages,
      turns: turnIds.map((turnId) => turnRecord(turnId, final, messages, history)),
    };
  });
}

function turnRecord(
  turnId: string,
  { frames: all, journal }: FinalState,
  messages: SentMessage[],
  history: History,
): TurnRecord {
  const frames = all.filter((frame) => frame.turnId === turnId);
  const started = frames.find((frame) => frame.type === "turn.started");
  const message = messages.find(({ script }) => script.key === started?.data.clientId);
  const end = frames.find(isTerminal);
  return {
    turnId,
    message,
    frames,
    hits: history.hits.filter(({ key }) => key === message?.script.key),
    resumed: journal.filter((entry) => entry.type === "turn.resumed" && entry.turnId === turnId).length,
    startedAt: Date.parse(started?.time ?? ""),
    endedAt: end === undefined ? Number.POSITIVE_INFINITY : Date.parse(end.time),
  };
}

export function isTerminal({ type }: Frame): boolean {
  return type === "turn.completed" || type === "turn.failed";
}

/** Reports whether a stop ended the turn. */
export function isStopped({ frames }: TurnRecord): boolean {
  return frames.some((frame) => frame.type === "turn.failed" && frame.data.error.code === "CANCELLED");
}

/** Maximum delay of the server's clock behind the runner's, in milliseconds. */
const CLOCK_MS = 20;

/** Counts the kills while a turn was active. */
export function killsDuring({ startedAt, endedAt }: TurnRecord, { kills }: History): number {
  return kills.filter(({ at }) => at >= startedAt - CLOCK_MS && at <= endedAt + CLOCK_MS).length;
}
