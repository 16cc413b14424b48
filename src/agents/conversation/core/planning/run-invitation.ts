/**
 * Agents that runs bring into the conversation that started the runs. Pure.
 *
 * RUNINVITE-1  A node in the mode `loop_in` adds its agent to the participants, as a user would, and in the same commit a turn of the agent
 *              starts: its message is the node's message, its caller the node of the run. The turn belongs to the exchange of the turn that
 *              called the tool, so it counts among the turns of the user's message and shares the budget, as after LOOPIN-4.
 * RUNINVITE-2  The end of that turn is sent to the run once, in the commit that ends it: the answer, or an error. The turn has an error if
 *              it failed, was stopped, lost its agent, or ended without text.
 * RUNINVITE-3  If a turn waits for the run, the turn of an invited agent skips the queue, at its beginning and at each cycle. So a run in a
 *              conversation with `turns: "queued"` does not wait for itself. A run in the background queues its turns.
 * RUNINVITE-4  Only a run of an open call of this conversation, or a run below it, may invite. Other runs get `NOT_FOUND`. The agent that
 *              called the tool, and any agent in a conversation that a call opened, are `FORBIDDEN`.
 */
import { defined } from "../../../../shared/defined.ts";
import { forbidden, notFound } from "../../../../shared/errors.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { isOpen } from "../operation.ts";
import type { RunInvited } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import { operationTraceparent } from "../trace.ts";
import { bringIn } from "./loop-in.ts";

/** Adds the agent that a run invites, and starts its turn. Throws what RUNINVITE-4 refuses, and as `bringIn` does. */
export function planRunInvited(
  state: ConversationState,
  { agentId, agent, announcement, by, content, invited, origin, traceparent }: RunInvited,
  input: PlanInput,
): AgentDecision[] {
  const turn = state.active.get(origin.turn);
  const operation = turn?.operations.find(({ item }) => item === origin.item);
  if (
    turn === undefined ||
    operation === undefined ||
    !isOpen(operation) ||
    operation.attempt !== origin.attempt
  )
    throw notFound("The call that started the run is over, so the agent did not join.");
  if (state.record.call !== undefined)
    throw forbidden(
      `"${agentId}" cannot join: another agent called "${turn.agentId}", which works alone. Use the mode "delegate".`,
    );
  if (agentId === turn.agentId)
    throw forbidden(`"${agentId}" waits for the run, so the run cannot invite it.`);
  const { joins, starts } = bringIn(
    state,
    turn,
    {
      type: "conversation.participant.add",
      caller: by,
      participant: { type: "agent", id: agentId },
      handoff: "recent",
      ...defined({ agent, announcement }),
    },
    {
      ...{ agentId, content, by },
      traceparent: traceparent ?? operationTraceparent(turn, origin.item),
      invited: { ...invited, ...(operation.mode === "sync" ? { passes: true } : {}) },
    },
    input,
  );
  return [...joins, ...starts];
}
