/** Checks of messages that arrive in batches, or are queued. Pure. */
import { isJsonObject } from "../../src/shared/json.ts";
import type { SentMessage } from "./history.ts";
import { type Scope, sentIn, tagOfTurn } from "./scope.ts";

/** Returns the messages of the queue that were refused when they could have begun, each with the reasons. */
export function refusedIn({ outcome }: Pick<Scope, "outcome">): Map<string, string[]> {
  const refused = new Map<string, string[]>();
  for (const { type, data } of outcome.journal) {
    if (type !== "conversation.signal.refused" || !isJsonObject(data)) continue;
    const id = String(data.id);
    refused.set(id, [...(refused.get(id) ?? []), String(data.code)]);
  }
  return refused;
}

export function checkQueued(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const { queue } = outcome.stored;
  if (queue !== undefined) fail("queued", `${queue.next - queue.first} messages wait for ever.`);
  const refused = refusedIn(scope);
  const sent = sentIn(scope);
  const isEnded = outcome.journal.some(({ type }) => type === "conversation.ended");
  for (const [tag, codes] of refused) {
    const isKnown = sent.some((message) => message.tag === tag);
    if (!isKnown || !isEnded || codes.some((code) => code !== "CONVERSATION_CLOSED"))
      fail("queued", `${tag} was refused in the queue: ${codes.join(", ")}.`);
  }
  const place = new Map(outcome.turns.map((turn, index) => [tagOfTurn(turn), index]));
  for (const { tag, refused: code, acknowledgedAt } of sent) {
    if (code === undefined) continue;
    if (!isEnded) fail("queued", `${tag} was refused with ${code} in a conversation that has not ended.`);
    if (place.has(tag) && acknowledgedAt === undefined) fail("queued", `${tag} was refused and has a turn.`);
  }
  const waited = outcome.journal.filter(({ type }) => type === "conversation.queue.received").map(countOf);
  const drained = outcome.journal.filter(({ type }) => type === "conversation.queue.drained").map(countOf);
  if (sum(waited) !== sum(drained) + (queue === undefined ? 0 : queue.next - queue.first))
    fail("queued", `${sum(waited)} messages were queued, and ${sum(drained)} left the queue.`);
  // The client resends a failed signal after the signals behind it.
  if (history.fired.some((fault) => fault.conversation === conversation && fault.kind === "error")) return;
  for (const batch of Map.groupBy(sent.filter(isInBatch), ({ batch }) => batch).values()) {
    const places = batch.flatMap(({ tag }) => place.get(tag) ?? []);
    const isAscending = places.every((one, index) => index === 0 || one > (places[index - 1] ?? 0));
    if (!isAscending) fail("queued", `The batch of ${batch[0]?.tag} began in the order ${places.join(" ")}.`);
  }
}

function isInBatch({ batch }: SentMessage): boolean {
  return batch !== undefined;
}

function countOf({ data }: { data?: unknown }): number {
  return isJsonObject(data) ? Number(data.count) : 0;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
