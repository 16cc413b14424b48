/** KILL-1 to KILL-3, KILL-9 and KILL-10: messages and their turns. */
import { MAX_RECOVERIES } from "../../../src/agents/conversation/core/conversation-limits.ts";
import type { History, SentMessage } from "../history.ts";
import { contentOf } from "../script.ts";
import {
  type ConversationRecord,
  isStopped,
  isTerminal,
  type TurnRecord,
  type Violation,
} from "./records.ts";

export function checkTurns(conversation: ConversationRecord, history: History): Violation[] {
  const found: Violation[] = [];
  const report = (rule: string, what: string) => found.push({ rule, conversation: conversation.id, what });
  for (const turn of conversation.turns) {
    const stops = history.stops.filter(({ turnId }) => turnId === turn.turnId);
    for (const what of faultsOf(turn, stops.length > 0)) report("KILL-1", `${turn.turnId} ${what}`);
    if (stops.some(({ outcome }) => outcome === "acknowledged") && !isStopped(turn))
      report("KILL-10", `${turn.turnId} has an acknowledged stop, and did not end stopped`);
    if (turn.message === undefined) report("KILL-2", `${turn.turnId} answers no sent message`);
  }
  for (const message of conversation.messages) {
    const { key } = message.script;
    const turns = conversation.turns.filter((turn) => turn.message === message);
    const acknowledged = new Set(
      history.acknowledgements.flatMap((one) => (one.key === key ? [one.turnId] : [])),
    );
    if (acknowledged.size === 0) {
      if (turns.length > 1) report("KILL-2", `${key} has ${turns.length} turns`);
    } else if (turns.length !== 1) {
      report("KILL-1", `${key} was acknowledged and has ${turns.length} turns`);
    } else if ([...acknowledged].some((turnId) => turnId !== turns[0]?.turnId)) {
      report(
        "KILL-1",
        `${key} was acknowledged as ${[...acknowledged].join(", ")}, but is ${turns[0]?.turnId}`,
      );
    }
  }
  for (const turn of forgotten(conversation, history)) {
    report("KILL-9", `${turn.turnId} was resumed only by the final read`);
  }
  for (const [first, second] of disorder(conversation, history)) {
    report("KILL-3", `${first.script.key} follows ${second.script.key}`);
  }
  return found;
}

function faultsOf({ frames, message, resumed }: TurnRecord, mayBeStopped: boolean): string[] {
  const faults: string[] = [];
  const ends = frames.filter(isTerminal);
  if (ends.length !== 1) faults.push(`ends ${ends.length} times`);
  const [end] = ends;
  if (end?.type === "turn.failed") {
    const { code } = end.data.error;
    const isWornOut = code === "RECOVERY_EXHAUSTED" && resumed === MAX_RECOVERIES;
    if (!isWornOut && !(code === "CANCELLED" && mayBeStopped))
      faults.push(`failed with ${code} after ${resumed} recoveries`);
  }
  const contents = frames.flatMap((frame) => (frame.type === "message.user" ? [frame.data.content] : []));
  if (message !== undefined && JSON.stringify(contents) !== JSON.stringify([contentOf(message.script)])) {
    faults.push(`holds ${contents.length} messages instead of the sent message`);
  }
  return faults;
}

function forgotten({ turns, final }: ConversationRecord, { acknowledgements }: History): TurnRecord[] {
  return turns.filter(
    ({ turnId, message }) =>
      acknowledgements.some(({ key }) => key === message?.script.key) &&
      final.journal.some(
        (entry) =>
          entry.type === "turn.resumed" && entry.turnId === turnId && Date.parse(entry.time) >= final.readAt,
      ),
  );
}

/** Finds pairs of messages in the wrong order. */
function disorder(
  { messages, turns }: ConversationRecord,
  { acknowledgements }: History,
): [SentMessage, SentMessage][] {
  const place = new Map(turns.map((turn) => [turn.message, turn.frames[0]?.seq ?? 0]));
  const firstAcknowledged = new Map<string, number>();
  for (const { key, at } of acknowledgements) {
    firstAcknowledged.set(key, Math.min(at, firstAcknowledged.get(key) ?? at));
  }
  return messages.flatMap((first, index) =>
    messages.slice(index + 1).flatMap((second): [SentMessage, SentMessage][] => {
      const isSettled = (firstAcknowledged.get(first.script.key) ?? Number.POSITIVE_INFINITY) < second.at;
      const isOrdered = isSettled || (first.manner === "socket" && second.manner === "socket");
      const [before, after] = [place.get(first), place.get(second)];
      return isOrdered && before !== undefined && after !== undefined && before > after
        ? [[first, second]]
        : [];
    }),
  );
}
