/** Fields of a turn's view: its caller, and failures that did not stop the turn. */
import { z } from "zod";

const agent = z.strictObject({ type: z.literal("agent"), agentId: z.string(), turnId: z.string() });
const workflow = z.strictObject({
  type: z.literal("workflow"),
  runId: z.string(),
  node: z.string().describe("The `ref` of the node.").exactOptional(),
});

/** The agent that started a turn, in one of its own, or the run. */
export const startingCaller = z
  .discriminatedUnion("type", [agent, workflow])
  .describe(
    "The agent that started the turn, with its own turn, or the run that did, with the node. Absent if a user did.",
  );

export const turnCaller = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("user"), userId: z.string() }),
  agent,
  workflow,
]);

/** The caller that started a turn: a user, another agent in one of its turns, or a node of a run. */
export type Caller = z.infer<typeof turnCaller>;

export const turnIssues = z.strictObject({
  toolFailures: z.int().min(0).exactOptional(),
  memoryExtractionFailed: z.boolean().exactOptional(),
  emptyReply: z
    .literal(true)
    .describe("The model's last reply was empty, and so is the message.")
    .exactOptional(),
  replyPaused: z
    .literal(true)
    .describe(
      "The provider paused a reply more often than the limit allows. The message has the reply up to the last pause.",
    )
    .exactOptional(),
  notAsked: z
    .array(z.string())
    .describe("Agents that the answer mentions and that got no turn for it.")
    .exactOptional(),
});

export type TurnIssues = z.infer<typeof turnIssues>;
