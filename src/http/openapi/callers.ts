/** The parts of a turn's view that concern who started it, and what did not stop it. */
import { z } from "zod";
import type { Caller, TurnIssues } from "../../protocol/views.ts";

/** The agent that started a turn, in one of its own. */
export const agentCaller = z
  .strictObject({ type: z.literal("agent"), agentId: z.string(), turnId: z.string() })
  .meta({ description: "The agent that started the turn, and its own turn. Absent where a user did." });

export const turnCaller: z.ZodType<Caller> = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("user"), userId: z.string() }),
  z.strictObject({ type: z.literal("agent"), agentId: z.string(), turnId: z.string() }),
  z.strictObject({ type: z.literal("workflow"), runId: z.string() }),
]);

export const turnIssues: z.ZodType<TurnIssues> = z.strictObject({
  toolFailures: z.exactOptional(z.int().min(0)),
  memoryExtractionFailed: z.exactOptional(z.boolean()),
  notAsked: z.exactOptional(
    z.array(z.string()).meta({ description: "Agents that the answer mentions and that got no turn for it." }),
  ),
});
