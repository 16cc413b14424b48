/** Measures the costs in a history: the interruptions, the recovery times and the repeated work. Pure. */
import { type ResultRow, summarise } from "../harness/results.ts";
import { type ConversationRecord, isStopped, recordsOf, type TurnRecord } from "./check/records.ts";
import type { History, Hit, Kill, SentMessage } from "./history.ts";

/** An interruption of one active turn by a kill. A turn that sleeps since an earlier kill is not interrupted again. */
export interface Interruption {
  key: string;
  /** The interrupted phase: a model's reply, a tool, or the time between the two. */
  in: "stream" | "tool" | "between";
  /** Milliseconds from the restart to the first sign of the turn. Other kills may happen in between. */
  resumedAfterMs: number;
  /**
   * The cause of the recovery: a connected client, or the actor's alarm. `result`: the turn had only interrupted `once` tools.
   * Such tools never run again, so the turn waits 30 s for late results that the killed process cannot deliver.
   */
  by: "client" | "alarm" | "result";
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
    if (isQueued(turn, kill.at)) return [];
    const cut = hits.filter(({ at, endedAt: until }) => at <= kill.at && until > kill.at);
    const caller = isLeftAlone(message, conversation, kill, resumedAt, history) ? "alarm" : "client";
    const waits = cut.every(isOnce) && isInterrupted(turn, conversation, kill.at, resumedAt);
    const by = waits ? "result" : caller;
    const kind = cut.some((hit) => hit.kind === "tool") ? "tool" : cut.length > 0 ? "stream" : "between";
    return [{ key: message.script.key, in: kind, resumedAfterMs: resumedAt - kill.readyAt, by }];
  });
}

/** Reports whether a turn waited in the queue. */
function isQueued({ frames }: TurnRecord, at: number): boolean {
  const began = frames.find(({ type }) => type === "message.started");
  return frames.some(({ type }) => type === "turn.queued") && Date.parse(began?.time ?? "9999-01-01") > at;
}

function isOnce(hit: Hit): boolean {
  return hit.kind === "tool" && hit.effect === "once";
}

/** Reports whether a `once` tool of the turn was interrupted before the time `to` and had no result at the time `from`. */
function isInterrupted(
  { turnId }: TurnRecord,
  { final }: ConversationRecord,
  from: number,
  to: number,
): boolean {
  const of = (types: readonly string[]) =>
    final.journal.filter((entry) => entry.turnId === turnId && types.includes(entry.type));
  const results = of(["tool.completed", "tool.failed", "tool.cancelled"]);
  return of(["tool.interrupted"]).some(({ time, operationId }) => {
    const result = results.find((entry) => entry.operationId === operationId);
    return Date.parse(time) <= to && Date.parse(result?.time ?? "9999-01-01") > from;
  });
}

/** Arrival times of frames that the current process created. */
function framesAt({ turnId }: TurnRecord, { connections, kills }: History): number[] {
  return connections.flatMap(({ frames }) =>
    frames.flatMap(({ at, frame }) => {
      if (frame.turnId !== turnId) return [];
      const restartedAt = kills.findLast(({ readyAt }) => readyAt <= at)?.readyAt ?? 0;
      return Date.parse(frame.time) >= restartedAt ? [at] : [];
    }),
  );
}

/** Reports whether no client called the conversation between the kill and the recovery of the turn. */
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

/** Returns the rows of `results.json` for a storm. */
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
    row("resume, only a once tool's result to wait for", "ms", resumed("result")),
    row(
      "kill to next process",
      "ms",
      history.kills.map(({ at, readyAt }) => readyAt - at),
    ),
    row("kills", "count", [history.kills.length]),
    row("turns", "count", [turns.length]),
    row("turns stopped", "count", [turns.filter(isStopped).length]),
    row("turns given up after too many crashes", "count", [
      turns.filter((turn) => hasFailed(turn) && !isStopped(turn)).length,
    ]),
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

/** Returns the number of hits, divided by the hits that a run without kills needs. */
function amplification(turns: readonly TurnRecord[], kind: "model" | "tool"): number {
  const hits = turns.flatMap((turn) => turn.hits.filter((hit) => hit.kind === kind));
  const distinct = new Set(
    hits.map((hit) =>
      hit.kind === "tool" ? hit.operationId : `${hit.key}/${"call" in hit ? hit.call : ""}`,
    ),
  );
  return hits.length / distinct.size;
}
