/** The bounds of sub-agents, as tools declare them and as calls of agents bring them. */
import { z } from "zod";
import { definitionIdSchema } from "../shared/id-schemas.ts";

/** Default for the number of concurrent sub-agents of one template in a conversation. */
export const SUB_AGENT_QUOTA = 3;

/** Tools, and hosts, that a template names. */
const MAX_NAMES = 100;

export const hostsSchema = z
  .array(
    z
      .string()
      .max(260)
      .regex(
        /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/,
        "A host is `host` or `host:port`, in small letters, without a path",
      ),
  )
  .max(MAX_NAMES);

const network = z.union(
  [z.enum(["any", "none"]), hostsSchema],
  'Must be "any", "none" or a list of hosts, as in ["manual.example"]',
);

/** `any`, `none`, or hosts as `host` or `host:port`. */
export type NetworkPolicy = z.infer<typeof network>;

const tools = z.array(z.string().min(1).max(64)).max(MAX_NAMES);

export const subAgentTemplateSchema = z.strictObject({
  name: definitionIdSchema,
  /** A subset of the agent's tools, by name. */
  tools,
  /** The hosts that its tools may reach: `none` when absent. */
  network: network.exactOptional(),
  /** Sub-agents of this template that a conversation has at a time; `SUB_AGENT_QUOTA` when absent. */
  quota: z.int().min(1).max(32).exactOptional(),
});

export type SubAgentTemplate = z.infer<typeof subAgentTemplateSchema>;

export const subAgentBoundsSchema = z.object({
  name: definitionIdSchema,
  tools,
  network,
  /** They come from a template further up, which does not name tools of this agent. */
  inherited: z.literal(true).exactOptional(),
});

/** The bounds of an agent that is called, and of all that it calls. */
export type SubAgentBounds = z.infer<typeof subAgentBoundsSchema>;
