/** Checks of the users' messages: each is recorded at most once, and in its order. Pure. */
import { isDeepStrictEqual } from "node:util";
import { refusedIn } from "./check-queue.ts";
import { type Scope, sentIn, tagIn, tagOfTurn } from "./scope.ts";

/** An acknowledged message is recorded exactly once, any other at most once. */
export function checkMessages(scope: Scope): void {
  const { outcome, fail } = scope;
  const refusals = refusedIn(scope);
  const tags = new Map(outcome.turns.map((turn) => [turn.id, tagOfTurn(turn)]));
  for (const { tag, content, acknowledgedAt, turnId, isQueued } of sentIn(scope)) {
    const recorded = outcome.messages.filter(
      (message) => message.role === "user" && tags.get(message.turnId) === tag,
    );
    const turns = outcome.turns.filter((turn) => tagOfTurn(turn) === tag);
    if (recorded.length > 1 || turns.length > 1) fail("once", `${tag} is recorded ${recorded.length} times.`);
    const isRefused = isQueued === true && refusals.has(tag);
    if (acknowledgedAt !== undefined && !isRefused && (recorded.length === 0 || turns.length === 0)) {
      fail("once", `${tag} was acknowledged and is not recorded.`);
    }
    for (const message of recorded) {
      if (!isDeepStrictEqual(message.content, content))
        fail("once", `${tag} is recorded as ${JSON.stringify(message.content)}.`);
      if (turnId !== undefined && message.turnId !== turnId)
        fail("once", `${tag} is in ${message.turnId}, not in ${turnId}.`);
    }
  }
  const known = new Set(sentIn(scope).map(({ tag }) => tag));
  for (const { input } of outcome.turns) {
    if (!known.has(tagIn(input))) fail("once", `Nobody sent ${JSON.stringify(input)}.`);
  }
}

/** A user's messages are recorded in the order in which the user sent them. */
export function checkOrder(scope: Scope): void {
  const place = new Map(scope.outcome.turns.map((turn, index) => [tagOfTurn(turn), index]));
  const sent = sentIn(scope);
  for (const first of sent) {
    for (const second of sent) {
      const [one, two] = [place.get(first.tag), place.get(second.tag)];
      if (first.user !== second.user || one === undefined || two === undefined) continue;
      if (first.acknowledgedAt === undefined || first.acknowledgedAt >= second.sentAt) continue;
      // Queued messages have an order among themselves. A message of another client may begin before them, and an edited message.
      const isBeside = first.client !== second.client || second.batch === undefined;
      if (first.isQueued === true && isBeside) continue;
      if (one > two) scope.fail("order", `${second.tag} stands before ${first.tag}.`);
    }
  }
}
