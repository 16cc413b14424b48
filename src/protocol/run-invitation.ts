/**
 * Agents that runs invite into the conversation which has started them: the envelopes between the coordinator of a node and that
 * conversation, with the schemas for both sides.
 */
import { z } from "zod";
import { trailFields } from "../shared/call-trail.ts";
import { agentIdSchema } from "../shared/id-schemas.ts";
import { MAX_CALL_LENGTH } from "./agent-call.ts";
import { callAddressSchema } from "./call-address.ts";

/** Asks for one turn of an agent, in the conversation that has started the run. */
export const AGENT_INVITE = "agent.invite";
/** Stops that turn. */
export const AGENT_UNINVITE = "agent.uninvite";

const label = z.string().min(1).max(200);

export const agentInviteSchema = callAddressSchema.extend({
  agentId: agentIdSchema,
  /** The `ref` of the node. */
  node: label,
  /** The message. */
  content: z.string().min(1).max(MAX_CALL_LENGTH),
  /** The first run above, which the conversation has started. */
  rootRunId: label,
  /** The operation that started it. */
  origin: callAddressSchema,
  /** The agents that wait for the run, from the first. */
  path: z.array(agentIdSchema).max(100),
  ...trailFields,
});

export type AgentInviteBody = z.infer<typeof agentInviteSchema>;

export const agentUninviteSchema = callAddressSchema.extend({ reason: z.string().max(500).exactOptional() });

export type AgentUninviteBody = z.infer<typeof agentUninviteSchema>;
