/**
 * Requests that change the participants of a conversation.
 *
 * PARTY-4  A user who joins may read the whole conversation and speak in it at once. A user who leaves loses this access: open connections
 *          are closed with 4401, and streams end.
 * PARTY-6  An agent may join only conversations of its projects. If the application is strict, they must also be in its jurisdiction. Other
 *          joins throw `FORBIDDEN`. A join adds the conversation to the agent's index of conversations, or to the user's list.
 */
import { CONVERSATION_OPENED } from "../../../protocol/agent-api.ts";
import type { ConversationView } from "../../../protocol/conversation-schemas.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import { separation } from "../../../protocol/location-policy.ts";
import { newParticipantSchema, participantSchema } from "../../../protocol/participants.ts";
import { defined } from "../../../shared/defined.ts";
import { forbidden, unwrap } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { validate } from "../../../shared/validation.ts";
import { newOperationId } from "../../base/mailbox/operation-id.ts";
import type { ActorContext } from "../context.ts";
import type { Join, Leave } from "../core/change-signals.ts";
import { checkOpen } from "../core/life.ts";
import type { Invitation } from "../core/signals.ts";
import type { ConversationIdentity, ConversationState } from "../core/state.ts";
import { conversationView } from "../reads/views.ts";
import type { ConversationAccess } from "./access.ts";
import { agentPart, checkChainLength, severalOf } from "./create-conversation.ts";

interface ParticipantsContext
  extends Pick<ActorContext, "clock" | "agent" | "location" | "listing" | "expel"> {
  runtime: {
    readonly state: ConversationState;
    readonly changes: { changeParticipants(signal: Join | Leave): Promise<void> };
  };
  access: Pick<ConversationAccess, "checkSpeaker">;
  /** The log of events, which has the people who may read the conversation. */
  copies: { events: { publish(): Promise<void> } };
}

export class Participants {
  constructor(private readonly context: ParticipantsContext) {}

  /** Throws `INVALID_INPUT` for no participant, `NOT_FOUND` for an unknown agent, and as `planJoin` does. */
  async add(principal: Principal, input: unknown): Promise<ConversationView> {
    const { runtime, access, listing } = this.context;
    access.checkSpeaker(principal);
    const added = validate(newParticipantSchema, input);
    const { type, id } = added;
    const handoff = added.type === "agent" ? added.handoff : undefined;
    checkOpen(runtime.state);
    const { record } = runtime.state;
    const brought = type === "agent" ? await broughtBy(this.context, record, id) : {};
    // The caller may have left while the agent answered.
    access.checkSpeaker(principal);
    await runtime.changes.changeParticipants({
      type: "conversation.participant.add",
      caller: callerOf(principal),
      participant: { type, id },
      ...brought,
      ...defined({ handoff }),
    });
    void this.context.copies.events.publish();
    if (record.listed !== false) await listing.publish();
    return conversationView(runtime.state);
  }

  /** Throws `INVALID_INPUT` for no participant, and as `planLeave` does. */
  async remove(principal: Principal, input: unknown): Promise<void> {
    const { runtime, access, expel, listing } = this.context;
    access.checkSpeaker(principal);
    const participant = validate(participantSchema, input);
    const caller = callerOf(principal);
    await runtime.changes.changeParticipants({
      type: "conversation.participant.remove",
      caller,
      participant,
    });
    if (participant.type === "user") expel();
    void this.context.copies.events.publish();
    if (runtime.state.record.listed !== false) await listing.publish();
  }
}

/** Returns the versions of a joining agent. Throws `NOT_FOUND` for an unknown agent, `FORBIDDEN` (PARTY-6), `TOO_LARGE`. */
export async function broughtBy(
  { clock, agent, location }: Pick<ActorContext, "clock" | "agent" | "location">,
  record: ConversationIdentity,
  id: string,
): Promise<Invitation> {
  const { tenant, projectId, agents } = record;
  const announcement = announcementTo(record, id);
  if (agents.some((known) => known.id === id)) return defined({ announcement });
  const apart = separation(record.id, id, location(tenant));
  if (apart !== null) throw forbidden(apart);
  const { chain, projectIds, leased } = unwrap(await agentPart(clock, () => agent(tenant, id), [projectId]));
  if (!projectIds.includes(projectId))
    throw forbidden(`The agent "${id}" does not belong to the project "${projectId}" of this conversation.`);
  checkChainLength(id, chain);
  return {
    agent: { id, ...defined({ leased, projectIds: severalOf(projectIds) }), chain },
    ...defined({ announcement }),
  };
}

function callerOf({ subject }: Principal): Join["caller"] {
  return { type: "user", userId: subject };
}

/** Returns the envelope that adds a conversation to the index of an agent; `undefined` for an unlisted conversation. */
function announcementTo({ tenant, listed }: ConversationIdentity, id: string): NewEnvelope | undefined {
  if (listed === false) return undefined;
  return {
    operationId: newOperationId(),
    to: { kind: "agent", tenant, id },
    type: CONVERSATION_OPENED,
    body: {},
  };
}
