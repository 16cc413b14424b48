/**
 * Planning who takes part in a conversation: users and agents who join, and who leave. Pure.
 *
 * PARTY-2  Whoever may speak in a conversation adds and removes participants. The agent that it began with stays. To add who
 *          takes part, or to remove who does not, changes nothing.
 *          A user can also be removed from a conversation that has ended, and then no longer reads it.
 * PARTY-3  An agent that joins pins the versions of its definitions, and has a session of its own. An agent that joins again
 *          keeps the versions that it had: the records of its turns refer to them.
 * PARTY-5  The active turns of an agent that leaves end as by a stop, in the same commit, with its compaction and extractions.
 */
import { checkPrices } from "../../../../library/prices.ts";
import { DramatisError, type ErrorData } from "../../../../shared/errors.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { checkOpen } from "../life.ts";
import { MAX_AGENTS, MAX_USERS } from "../limits.ts";
import type { Join, Leave } from "../signals.ts";
import { type ConversationState, primaryAgent, takesPart } from "../state.ts";
import { stopCompactions, stopTurn } from "./cancel.ts";
import { handOver } from "./handoff.ts";
import { giveUpExtractions } from "./hooks.ts";

const LEFT: ErrorData = {
  code: "CANCELLED",
  message: "The agent has left the conversation.",
  retriable: false,
};

/** Adds a participant. Throws `CONFLICT` if there are too many, `INVALID_INPUT` for a budget that an agent's models cannot keep. */
export function planJoin(
  state: ConversationState,
  signal: Join,
  input: Pick<PlanInput, "turns"> = {},
): AgentDecision[] {
  const { participant, agent, announcement, caller: by } = signal;
  const { record, budget } = state;
  checkOpen(state);
  if (takesPart(record, participant)) return [];
  const joins: AgentDecision = { type: "ADD_PARTICIPANT", participant, by };
  if (participant.type === "user") {
    const users = record.participants.filter(({ type }) => type === "user").length;
    if (users >= MAX_USERS) throw full(`At most ${MAX_USERS} users may take part in a conversation.`);
    return [joins];
  }
  const known = record.agents.some(({ id }) => id === participant.id);
  if (!known) {
    if (agent === undefined) throw new Error("An agent that joins brings its versions.");
    if (record.agents.length >= MAX_AGENTS)
      throw full(`At most ${MAX_AGENTS} agents may take part in a conversation, those who left included.`);
    if (budget !== undefined) checkPrices(agent.chain, budget);
  }
  return [
    { ...joins, ...(known || agent === undefined ? {} : handOver(state, agent, signal, input)) },
    ...(announcement === undefined ? [] : [{ type: "SEND" as const, envelope: announcement }]),
  ];
}

/** Removes a participant. Throws `CONFLICT` for the agent that the conversation began with. */
export function planLeave(
  state: ConversationState,
  { participant, caller: by }: Leave,
  input: PlanInput,
): AgentDecision[] {
  const { record } = state;
  if (participant.type === "agent") checkOpen(state);
  if (!takesPart(record, participant)) return [];
  const leaves: AgentDecision = { type: "REMOVE_PARTICIPANT", participant, by };
  if (participant.type === "user") return [leaves];
  const { id } = participant;
  if (id === primaryAgent(record).id)
    throw new DramatisError(
      "CONFLICT",
      `The conversation began with the agent "${id}", so it stays. End the conversation instead.`,
    );
  const error = { code: "CANCELLED", message: LEFT.message };
  return [
    ...[...state.active.values()]
      .filter(({ agentId }) => agentId === id)
      .flatMap((turn) => stopTurn(turn, LEFT, { caller: by }, input)),
    ...stopCompactions(state, input).filter(({ session }) => session === id),
    ...giveUpExtractions(state, error, ({ agentId }) => agentId === id, input),
    leaves,
  ];
}

function full(message: string): DramatisError {
  return new DramatisError("CONFLICT", `${message} Remove one first, or start another conversation.`);
}
