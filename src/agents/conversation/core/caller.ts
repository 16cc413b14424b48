/**
 * Callers: who starts turns. Pure.
 *
 * CALLER-1  Two callers never share an idempotency key, even if both choose the same text.
 * CORR-2  A signal is identified by its id and its supplied correlation id. The same id with another correlation id is another signal.
 */
import type { Caller } from "../../../protocol/caller-schemas.ts";
import type { ConversationIdentity } from "./state.ts";

/** Returns the origin of a caller's messages, as session events name it. */
export function originOf(caller: Caller): string {
  return `${caller.type}:${idOf(caller)}`;
}

/**
 * Returns the name of a caller's idempotency key. An agent's keys do not depend on its turn: an agent that repeats a
 * request in another turn gets the same answer.
 */
export function callerKey(caller: Caller, key: string, correlationId?: string): string {
  const id = idOf(caller);
  const name = `${id.length}:${id}:${key}`;
  const own = caller.type === "user" ? name : `${caller.type}:${name}`;
  return correlationId === undefined ? own : `c${correlationId.length}:${correlationId}:${own}`;
}

/** Reports whether several people take part, or have. */
export function hasSeveralPeople({
  participants,
  several,
}: Pick<ConversationIdentity, "participants" | "several">): boolean {
  return several === true || participants.filter(({ type }) => type === "user").length > 1;
}

/** Names who wrote a message: by id, but for the only person of a conversation. */
export function speakerOf(
  record: Pick<ConversationIdentity, "participants" | "several">,
  caller: Caller | undefined,
): string {
  const isOnly = caller === undefined || (caller.type === "user" && !hasSeveralPeople(record));
  return isOnly ? "user" : `${caller.type} ${JSON.stringify(idOf(caller))}`;
}

/** Returns the caller's own id, without its turn. */
function idOf(caller: Caller): string {
  switch (caller.type) {
    case "user":
      return caller.userId;
    case "agent":
      return caller.agentId;
    case "workflow":
      return caller.runId;
    default:
      return caller satisfies never;
  }
}
