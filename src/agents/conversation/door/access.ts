/** Rules of access to a conversation. */
import { DramatisError } from "../../../shared/errors.ts";
import { mayReadAll, type Principal } from "../../../shared/principal.ts";
import type { ConversationIdentity } from "../core/state.ts";

/** Throws `NOT_FOUND`, as for an unknown conversation, unless the principal may read this one. */
export function checkReader(record: ConversationIdentity, principal: Principal): void {
  if (record.tenant === principal.tenant && (isParticipant(record, principal) || mayReadAll(principal)))
    return;
  throw new DramatisError("NOT_FOUND", "There is no such conversation.");
}

/** As `checkReader`. Also throws `FORBIDDEN` unless the principal is a participant or an admin. */
export function checkSpeaker(record: ConversationIdentity, principal: Principal): void {
  checkReader(record, principal);
  if (isParticipant(record, principal) || principal.roles.includes("admin")) return;
  throw new DramatisError("FORBIDDEN", "Only participants of a conversation may write to it.");
}

function isParticipant(record: ConversationIdentity, { subject }: Principal): boolean {
  return record.participants.some(({ type, id }) => type === "user" && id === subject);
}
