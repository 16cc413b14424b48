/** Rules of access to a conversation. */
import { DramatisError } from "../../../shared/errors.ts";
import { mayReadAll, type Principal } from "../../../shared/principal.ts";
import type { ConversationIdentity } from "../core/state.ts";

/** Throws `NOT_FOUND`, as for an unknown conversation, unless the principal may read this one. */
export function checkReader(record: ConversationIdentity, principal: Principal): void {
  if (record.tenant === principal.tenant && (isParticipant(record, principal) || mayReadAll(principal)))
    return;
  throw noConversation(record.id);
}

/** The refusal for a conversation that does not exist, and for one that the caller may not read. */
export function noConversation(id: string): DramatisError {
  return new DramatisError("NOT_FOUND", `There is no conversation "${id}".`);
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
