/**
 * Requests that change who takes part in a conversation.
 *
 * PARTY-4  A user who joins may read the whole conversation and speak in it at once. One who left may not: open connections
 *          are closed with 4401, and streams end.
 * PARTY-6  An agent joins only a conversation of a project that it works in, and where the application is strict of its own
 *          jurisdiction: `FORBIDDEN` otherwise. Its index of conversations and the lists of its users get to know.
 */
import type { Clock } from "../../../ports/clock.ts";
import { type AgentApi, CONVERSATION_OPENED } from "../../../protocol/agent-api.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import { type LocationPolicy, separation } from "../../../protocol/location-policy.ts";
import { newParticipantSchema, participantSchema } from "../../../protocol/participants.ts";
import type { ConversationView } from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import { DramatisError, unwrap } from "../../../shared/errors.ts";
import type { Principal } from "../../../shared/principal.ts";
import { validate } from "../../../shared/validation.ts";
import { newOperationId } from "../../base/mailbox/operation-id.ts";
import { checkOpen } from "../core/life.ts";
import type { Invitation, Join, Leave } from "../core/signals.ts";
import type { ConversationIdentity, ConversationState } from "../core/state.ts";
import { conversationView } from "../reads/views.ts";
import { agentPart, checkChainLength, severalOf } from "./create-conversation.ts";

export interface ParticipantsPorts {
  runtime: {
    readonly state: ConversationState;
    readonly changes: { changeParticipants(signal: Join | Leave): Promise<void> };
  };
  /** Finds the actor of an agent of the conversation's tenant. */
  agent(tenant: string, id: string): Promise<Pick<AgentApi, "persona">>;
  /** Where the conversations of a tenant may live. */
  location(tenant: string): LocationPolicy;
  /** Throws `NOT_FOUND` or `FORBIDDEN` unless this principal may speak in the conversation. */
  checkSpeaker(principal: Principal): void;
  /** Ends the connections of those who may not read the conversation any more. */
  expel(): void;
  /** Puts the conversation's entry into the directory. */
  publish(): Promise<void>;
  clock: Pick<Clock, "timer">;
}

export class Participants {
  constructor(private readonly ports: ParticipantsPorts) {}

  /** Throws `INVALID_INPUT` for no participant, `NOT_FOUND` for an unknown agent, and as `planJoin` does. */
  async add(principal: Principal, input: unknown): Promise<ConversationView> {
    const { runtime, checkSpeaker, publish } = this.ports;
    checkSpeaker(principal);
    const added = validate(newParticipantSchema, input);
    const { type, id } = added;
    const handoff = added.type === "agent" ? added.handoff : undefined;
    checkOpen(runtime.state);
    const { record } = runtime.state;
    const brought = type === "agent" ? await broughtBy(this.ports, record, id) : {};
    // The caller may have left while the agent answered.
    checkSpeaker(principal);
    await runtime.changes.changeParticipants({
      type: "conversation.participant.add",
      caller: callerOf(principal),
      participant: { type, id },
      ...brought,
      ...defined({ handoff }),
    });
    if (record.listed !== false) await publish();
    return conversationView(runtime.state);
  }

  /** Throws `INVALID_INPUT` for no participant, and as `planLeave` does. */
  async remove(principal: Principal, input: unknown): Promise<void> {
    const { runtime, checkSpeaker, expel, publish } = this.ports;
    checkSpeaker(principal);
    const participant = validate(participantSchema, input);
    const caller = callerOf(principal);
    await runtime.changes.changeParticipants({
      type: "conversation.participant.remove",
      caller,
      participant,
    });
    if (participant.type === "user") expel();
    if (runtime.state.record.listed !== false) await publish();
  }
}

/** Returns what an agent brings that joins a conversation. Throws `NOT_FOUND` for an unknown one, `FORBIDDEN` (PARTY-6), `TOO_LARGE`. */
export async function broughtBy(
  { clock, agent, location }: Pick<ParticipantsPorts, "clock" | "agent" | "location">,
  record: ConversationIdentity,
  id: string,
): Promise<Invitation> {
  const { tenant, projectId, agents } = record;
  const announcement = announcementTo(record, id);
  if (agents.some((known) => known.id === id)) return defined({ announcement });
  const apart = separation(record.id, id, location(tenant));
  if (apart !== null) throw new DramatisError("FORBIDDEN", apart);
  const { chain, projectIds, leased } = unwrap(await agentPart(clock, () => agent(tenant, id)));
  if (!projectIds.includes(projectId))
    throw new DramatisError(
      "FORBIDDEN",
      `The agent "${id}" does not work in the project "${projectId}" of this conversation.`,
    );
  checkChainLength(id, chain);
  return {
    agent: { id, ...defined({ leased, projectIds: severalOf(projectIds) }), chain },
    ...defined({ announcement }),
  };
}

function callerOf({ subject }: Principal): Join["caller"] {
  return { type: "user", userId: subject };
}

/** Returns the envelope by which a conversation joins the index of an agent; `undefined` where it stays out of lists. */
function announcementTo({ tenant, listed }: ConversationIdentity, id: string): NewEnvelope | undefined {
  if (listed === false) return undefined;
  return {
    operationId: newOperationId(),
    to: { kind: "agent", tenant, id },
    type: CONVERSATION_OPENED,
    body: {},
  };
}
