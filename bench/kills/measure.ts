/** What a history says about cost: which kills interrupted what, how long it took to go on, and what was done twice. Pure. */
import { type ResultRow, summarise } from "../harness/results.ts";
import { type ConversationRecord, recordsOf, type TurnRecord } from "./check/records.ts";
import type { History, Kill, SentMessage } from "./history.ts";

/** One turn that a kill found at work. A turn that sleeps since an earlier kill is not interrupted again. */
export interface Interruption {
  key: string;
  /** In a model's reply, in a tool, or between two of them. */
  in: "stream" | "tool" | "between";
  /** Milliseconds from the moment the next process accepted connections to the first sign of the turn; other kills may
   * have come in between. */
  resumedAfterMs: number;
  /** What brought the turn back: a client that was there, or the actor's own alarm. */
  by: "client" | "alarm";
}

export function interruptionsOf(history: History): Interruption[] {
  return recordsOf(history).flatMap((conversation) =>
    conversation.turns.flatMap((turn) => interruptionsOfTurn(turn, conversation, history)),
  );
}

function interruptionsOfTurn(
  turn: TurnRecord,
  conversation: ConversationRecord,
  history: History,
): Interruption[] {
  const { message, hits, startedAt, endedAt } = turn;
  if (message === undefined) return [];
  const signs = [startedAt, ...hits.map(({ at }) => at), ...framesAt(turn, history)].sort((a, b) => a - b);
  let restartedAt = 0;
  return history.kills.flatMap((kill): Interruption[] => {
    const isAtWork = signs.some((at) => at >= restartedAt && at <= kill.at);
    restartedAt = kill.readyAt;
    const resumedAt = signs.find((at) => at >= kill.readyAt);
    if (kill.at < startedAt || kill.at > endedAt || !isAtWork || resumedAt === undefined) return [];
    const cut = hits.filter(({ at, endedAt: until }) => at <= kill.at && until > kill.at);
    const by = isLeftAlone(message, conversation, kill, resumedAt, history) ? "alarm" : "client";
    const kind = cut.some((hit) => hit.kind === "tool") ? "tool" : cut.length > 0 ? "stream" : "between";
    return [{ key: message.script.key, in: kind, resumedAfterMs: resumedAt - kill.readyAt, by }];
  });
}

/** When frames of a turn arrived that are not older than the process that sent them. */
function framesAt({ turnId }: TurnRecord, { connections, kills }: History): number[] {
  return connections.flatMap(({ frames }) =>
    frames.flatMap(({ at, frame }) => {
      if (frame.turnId !== turnId) return [];
      const restartedAt = kills.findLast(({ readyAt }) => readyAt <= at)?.readyAt ?? 0;
      return Date.parse(frame.time) >= restartedAt ? [at] : [];
    }),
  );
}

/** Nobody called the conversation from the kill on until the turn went on. */
function isLeftAlone(
  { manner }: SentMessage,
  { messages }: ConversationRecord,
  kill: Kill,
  until: number,
  { acknowledgements }: History,
): boolean {
  if (manner !== "post") return false;
  return messages.every(({ at, script }) => {
    const acknowledged = acknowledgements.find(({ key }) => key === script.key)?.at ?? at;
    return at > until || acknowledged < kill.at;
  });
}

/** A storm in rows of `results.json`. */
export function rowsOf(history: History): ResultRow[] {
  const interruptions = interruptionsOf(history);
  const turns = recordsOf(history).flatMap((conversation) => conversation.turns);
  const row = (metric: string, unit: "ms" | "count", samples: number[]) =>
    summarise({ case: "kills", system: "dramatis", metric, unit }, samples);
  const resumed = (by: Interruption["by"]) =>
    interruptions.filter((one) => one.by === by).map(({ resumedAfterMs }) => resumedAfterMs);
  const count = (kind: Interruption["in"]) => [interruptions.filter((one) => one.in === kind).length];
  return [
    row("resume, client there", "ms", resumed("client")),
    row("resume, alarm only", "ms", resumed("alarm")),
    row(
      "kill to next process",
      "ms",
      history.kills.map(({ at, readyAt }) => readyAt - at),
    ),
    row("kills", "count", [history.kills.length]),
    row("turns", "count", [turns.length]),
    row("turns given up after too many crashes", "count", [turns.filter(hasFailed).length]),
    row("interrupted in a stream", "count", count("stream")),
    row("interrupted in a tool", "count", count("tool")),
    row("interrupted in between", "count", count("between")),
    row("model calls per call needed", "count", [amplification(turns, "model")]),
    row("tool hits per operation", "count", [amplification(turns, "tool")]),
  ];
}

function hasFailed({ frames }: TurnRecord): boolean {
  return frames.some(({ type }) => type === "turn.failed");
}

/** Hits made for each that would have done without a kill. */
function amplification(turns: readonly TurnRecord[], kind: "model" | "tool"): number {
  const hits = turns.flatMap((turn) => turn.hits.filter((hit) => hit.kind === kind));
  const distinct = new Set(
    hits.map((hit) => (hit.kind === "model" ? `${hit.key}/${hit.call}` : hit.operationId)),
  );
  return hits.length / distinct.size;
}
