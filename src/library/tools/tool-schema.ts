/** Schemas of tools, and the limits of their calls. The schemas are strict: an unknown field is an error, so a misspelt setting is never ignored. */
import { z } from "zod";
import { approvalNeedSchema } from "../../protocol/approval-schema.ts";
import { TOOL_EFFECTS } from "../../protocol/definition-parts.ts";
import type { ToolDefinition } from "../../protocol/definitions.ts";
import { hostsSchema } from "../../protocol/sub-agent.ts";
import { serverAddressSchema } from "../../shared/server-address.ts";
import { referenceSchema } from "../definitions/reference.ts";
import { agentTarget, agentTargetSchema, MAX_AGENT_TIMEOUT_MS } from "./agent-tool.ts";
import { a2aTarget } from "./remote-agent.ts";
import { workflowTarget } from "./workflow-tool.ts";

/** Maximum timeout of one attempt of a call, in milliseconds. */
export const MAX_TIMEOUT_MS = 900_000;

/** Default timeout of one attempt of a tool, in milliseconds. */
export const DEFAULT_TOOL_TIMEOUT_MS = 60_000;

/** Maximum number of attempts of a tool's call, including the first. */
export const MAX_TOOL_ATTEMPTS = 10;

/** Maximum pause between two attempts of a tool's call, in milliseconds. */
export const MAX_TOOL_BACKOFF_MS = 60_000;

/** Default pause before the second attempt, in milliseconds. */
export const DEFAULT_TOOL_BACKOFF_MS = 1_000;

const jsonObject = z.record(z.string(), z.json());

/** The `retry` of a tool, as authors write it. */
export const retrySchema = z.strictObject({
  maxAttempts: z.int().min(1).max(MAX_TOOL_ATTEMPTS).exactOptional(),
  backoffMs: z.int().min(0).max(MAX_TOOL_BACKOFF_MS).exactOptional(),
});

/** Describes why a tool's time limit is not allowed; `null` if it is. Code has a lower maximum than agents and workflows. */
export function timeoutProblem({
  target,
  timeoutMs,
}: Pick<ToolDefinition, "target" | "timeoutMs">): string | null {
  const isElsewhere = agentTarget(target) ?? workflowTarget(target) ?? a2aTarget(target);
  if (isElsewhere !== undefined || timeoutMs <= MAX_TIMEOUT_MS) return null;
  return `Must be ${MAX_TIMEOUT_MS} at most for a tool that runs code.`;
}

/** The `retry` of a tool or task, as conversations and runs store it. */
export const pinnedRetrySchema = z.strictObject({
  maxAttempts: z.int().min(2).max(MAX_TOOL_ATTEMPTS),
  backoffMs: z.int().min(0).max(MAX_TOOL_BACKOFF_MS),
  backoff: z.enum(["none", "linear", "exponential"]).exactOptional(),
  maxDelayMs: z.int().min(0).max(MAX_TOOL_BACKOFF_MS).exactOptional(),
});

export const a2aTargetSchema = z.strictObject({ a2a: serverAddressSchema });

/** A tool, without its code. */
export const toolDefinitionSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-zA-Z0-9_-]{1,64}$/, "A tool's name is 1 to 64 letters, digits, underscores and hyphens"),
  description: z.string().min(1, "Must explain to the model when to use the tool.").max(10_000),
  inputSchema: jsonObject.refine((schema) => schema.type === "object", {
    error: "The input schema must describe an object: wrap it in z.object({…})",
  }),
  effect: z.enum(TOOL_EFFECTS),
  timeoutMs: z.int().min(1).max(MAX_AGENT_TIMEOUT_MS),
  retry: pinnedRetrySchema.exactOptional(),
  hosts: hostsSchema.exactOptional(),
  async: z.boolean().exactOptional(),
  approval: approvalNeedSchema.exactOptional(),
  target: z
    .union(
      [
        z.strictObject({ task: referenceSchema }),
        z.strictObject({ workflow: referenceSchema }),
        a2aTargetSchema,
        agentTargetSchema,
      ],
      {
        error:
          "Must be {agent, mode?, modes?, handoff?}, {task}, {workflow} or {a2a}. `agent` is the id of an agent, `task` a reference to a task or a tool in code, `workflow` a reference to a workflow, `a2a` the https address of an agent of another server.",
      },
    )
    .exactOptional(),
  inputMapping: z.record(z.string().min(1).max(200), z.string().min(1)).exactOptional(),
}) satisfies z.ZodType<ToolDefinition>;
