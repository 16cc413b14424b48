/**
 * Planning who takes part in a conversation: users and agents who join, and who leave. Pure.
 *
 * PARTY-2  Whoever may speak in a conversation adds and removes participants. The primary agent stays. Adding a participant again, or
 *          removing a person who does not take part, is a no-op. A user can also be removed from a conversation that has ended, and then no
 *          longer reads it.
 * PARTY-3  An agent that joins pins the versions of its definitions, and has a session of its own. An agent that joins again keeps the
 *          versions that it had: the records of its turns refer to them.
 * PARTY-5  The active turns of an agent that leaves end as by a stop, in the same commit, with its compaction and extractions.
 * LIFE-5  The deletion of an agent reaches its conversations. If other agents take part, the agent leaves the conversation, and the first
 *         of the others becomes the primary agent. Otherwise the conversation is `failed`, and input gets `CONVERSATION_CLOSED` with the
 *         reason.
 */
import { checkPrices } from "../../../../library/registry/prices.ts";
import type { Caller } from "../../../../protocol/views.ts";
import { DramatisError, type ErrorData } from "../../../../shared/errors.ts";
import { MAX_AGENTS, MAX_USERS } from "../conversation-limits.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { checkOpen } from "../life.ts";
import type { AgentDeleted, Join, Leave } from "../signals.ts";
import { type ConversationState, isPresent, primaryAgent, takesPart } from "../state.ts";
import { presentAgents } from "./address.ts";
import { stopCompactions, stopTurn } from "./cancel.ts";
import { endAs } from "./complete.ts";
import { handOver } from "./handoff.ts";
import { giveUpExtractions } from "./hooks.ts";

const LEFT: ErrorData = {
  code: "CANCELLED",
  message: "The agent has left the conversation.",
  retriable: false,
};

const DELETED: ErrorData = {
  code: "CANCELLED",
  message: "The agent was deleted.",
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

/** Removes a participant. Throws `CONFLICT` for the primary agent. */
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
      `The agent "${id}" answers messages without an addressee, so it stays. End the conversation instead.`,
    );
  return agentLeaves(state, id, by, LEFT, input);
}

/** Removes a deleted agent (LIFE-5). Repeating it has no effect. */
export function planAgentDeleted(
  state: ConversationState,
  { agentId, caller }: AgentDeleted,
  input: PlanInput,
): AgentDecision[] {
  const { record, status } = state;
  if (status !== "active" || !isPresent(record, agentId)) return [];
  if (presentAgents(record).length > 1) return agentLeaves(state, agentId, caller, DELETED, input);
  const reason = `Its agent "${agentId}" was deleted.`;
  return endAs("failed", state, { caller, reason }, DELETED, input);
}

/** Ends an agent's work with `error`, and removes the agent (PARTY-5). */
function agentLeaves(
  state: ConversationState,
  id: string,
  by: Caller,
  error: ErrorData,
  input: PlanInput,
): AgentDecision[] {
  const { code, message } = error;
  return [
    ...[...state.active.values()]
      .filter(({ agentId }) => agentId === id)
      .flatMap((turn) => stopTurn(turn, error, { caller: by }, input)),
    ...stopCompactions(state, input).filter(({ session }) => session === id),
    ...giveUpExtractions(state, { code, message }, ({ agentId }) => agentId === id, input),
    {
      type: "REMOVE_PARTICIPANT",
      participant: { type: "agent", id },
      by,
      ...(error === DELETED ? { isDeleted: true } : {}),
    },
  ];
}

function full(message: string): DramatisError {
  return new DramatisError("CONFLICT", `${message} Remove one first, or start another conversation.`);
}
