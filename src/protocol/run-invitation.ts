/**
 * Agents that runs invite into the conversation which has started them: the envelopes between the coordinator of a node and that
 * conversation, with the schemas for both sides.
 */
import { z } from "zod";
import { type CallTrail, trailFields } from "../shared/call-trail.ts";
import { agentIdSchema } from "../shared/id-schemas.ts";
import { isOperationId } from "../shared/identifiers.ts";
import { MAX_CALL_LENGTH } from "./agent-call.ts";

/** Asks for one turn of an agent, in the conversation that has started the run. */
export const AGENT_INVITE = "agent.invite";
/** Stops that turn. */
export const AGENT_UNINVITE = "agent.uninvite";

/** The operation of a node, and its attempt. */
interface NodeAddress {
  operationId: string;
  /** From 1. */
  attempt: number;
}

/** The body of `agent.invite`. The run is its sender. */
export interface AgentInviteBody extends NodeAddress, CallTrail {
  agentId: string;
  /** The `ref` of the node. */
  node: string;
  /** The message. */
  content: string;
  /** The first run above, which the conversation has started. */
  rootRunId: string;
  /** The operation that started it. */
  origin: NodeAddress;
  /** The agents that wait for the run, the first one first. */
  path: string[];
}

/** The body of `agent.uninvite`. */
export interface AgentUninviteBody extends NodeAddress {
  reason?: string;
}

const address = {
  operationId: z.string().refine(isOperationId, "Must be the id of an operation."),
  attempt: z.int().min(1),
};
const label = z.string().min(1).max(200);

export const agentInviteSchema: z.ZodType<AgentInviteBody> = z.object({
  ...address,
  agentId: agentIdSchema,
  node: label,
  content: z.string().min(1).max(MAX_CALL_LENGTH),
  rootRunId: label,
  origin: z.object(address),
  path: z.array(agentIdSchema).max(100),
  ...trailFields,
});

export const agentUninviteSchema: z.ZodType<AgentUninviteBody> = z.object({
  ...address,
  reason: z.string().max(500).exactOptional(),
});
