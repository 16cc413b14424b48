/**
 * The status of a conversation, as clients see it, and its end. Pure.
 *
 * LIFE-1  A conversation is `waiting` if it has begun turns and each of them only waits. A turn may wait for a person, for operations in
 *         the background, for results by a handle, or for tools that its client runs. If a begun turn works again, the conversation is `active`.
 * LIFE-2  A commit that changes the shown status has an entry for it, and clients get it as `conversation.updated`. Other commits have no
 *         such entry, so a turn that never waits stores no status.
 */
import type { ConversationView } from "../../../protocol/conversation-schemas.ts";
import { DramatisError } from "../../../shared/errors.ts";
import type { ConversationState } from "./state.ts";
import type { Transition } from "./transition.ts";
import { onlyWaits } from "./waits.ts";

export function shownStatus({
  status,
  active,
}: Pick<ConversationState, "status" | "active">): ConversationView["status"] {
  if (status !== "active") return status;
  const begun = [...active.values()].filter(({ queued }) => queued !== true);
  return begun.length > 0 && begun.every(onlyWaits) ? "waiting" : "active";
}

/** Throws `CONVERSATION_CLOSED` if the conversation has ended. */
export function checkOpen({ status }: Pick<ConversationState, "status">): void {
  if (status === "active") return;
  const why =
    status === "completed"
      ? "This conversation has ended."
      : "This conversation has failed: its agents were deleted, so no agent can answer.";
  throw new DramatisError("CONVERSATION_CLOSED", `${why} Start a new one.`);
}

/** Notes that a commit makes a conversation wait or resume (LIFE-2). Call it after all other changes of the commit. */
export function noteStatus(before: ConversationState, transition: Transition): Transition {
  if (transition.entries.length === 0) return transition;
  const [from, to] = [shownStatus(before), shownStatus(transition.state)];
  if (from === to || (to !== "waiting" && to !== "active")) return transition;
  return { ...transition, entries: [...transition.entries, { type: `conversation.${to}` }] };
}
