/** What ids that clients give stand for in a conversation's turns. */
import { DramatisError } from "../../../shared/errors.ts";
import { parseItemId } from "../core/ids.ts";
import { finalReply, type Operation, type Turn } from "../core/state.ts";

/** A turn by its number; `null` if there is none. */
type TurnOf = (n: number) => Turn | null;

/** Throws `NOT_FOUND` for an id that names no operation of this conversation. */
export function operationAt(id: string, turnOf: TurnOf): { turn: Turn; operation: Operation } {
  const address = parseItemId(id);
  const turn = address?.prefix === "op" ? turnOf(address.turn) : null;
  const operation = turn?.operations.find(({ item }) => item === address?.item);
  if (turn === null || operation === undefined || turn.stem !== address?.stem) {
    throw new DramatisError("NOT_FOUND", "This conversation has no such operation.");
  }
  return { turn, operation };
}

/** Throws `INVALID_INPUT` for an id that names no message of the transcript. */
export function checkReplyTo(id: string | undefined, turnOf: TurnOf): void {
  if (id === undefined) return;
  const address = parseItemId(id);
  const turn = address?.prefix === "msg" ? turnOf(address.turn) : null;
  const isMessage = turn !== null && (address?.item === 0 || address?.item === finalReply(turn)?.item);
  if (isMessage && address?.stem === turn.stem) return;
  throw new DramatisError("INVALID_INPUT", "`replyToMessageId` names no message of this conversation.", {
    errors: [{ path: "/replyToMessageId", message: "no such message" }],
  });
}
