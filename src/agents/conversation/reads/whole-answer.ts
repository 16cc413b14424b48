/** The answer of a called agent, for the caller that got its excerpt (DELEGATE-10). */
import type { CallAddress } from "../../../protocol/call-address.ts";
import { notFound } from "../../../shared/errors.ts";
import { answerOf } from "../core/caller-envelopes.ts";
import type { ConversationState } from "../core/state.ts";
import type { Turn } from "../core/turn.ts";

/** Returns the JSON of the answer to a call, as UTF-8. Throws `NOT_FOUND` if the conversation has no answer to the call. */
export function wholeAnswer(
  { record: { call } }: Pick<ConversationState, "record">,
  turn: Turn | null,
  { operationId, attempt }: CallAddress,
): Uint8Array {
  const isOf = call?.operationId === operationId && call.attempt === attempt;
  const answer = isOf && turn !== null ? answerOf(turn) : undefined;
  if (answer === undefined) throw notFound("The conversation has no answer to this call.");
  return new TextEncoder().encode(JSON.stringify(answer));
}
