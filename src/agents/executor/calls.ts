/** Validates the calls of a batch. An invalid call gets its own error result and does not stop the others. */
import { z } from "zod";
import { toolLibrarySchema } from "../../library/definitions/mcp-reference.ts";
import { sentSkillsSchema } from "../../library/skills/skill.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import { MAX_TIMEOUT_MS } from "../../library/tools/tool-schema.ts";
import { elicitedAnswer } from "../../protocol/elicitation.ts";
import { type ExecutorReport, MAX_OUTPUT_BYTES, type ToolInvocation } from "../../protocol/executor-api.ts";
import { identifier } from "../../protocol/requests.ts";
import type { PinnedTask } from "../../protocol/task-definition.ts";
import { calledMemorySchema } from "../../protocol/tool-memory.ts";
import { workspaceLinkSchema } from "../../protocol/workspace.ts";
import { trailFields } from "../../shared/call-trail.ts";
import { definitionIdSchema } from "../../shared/id-schemas.ts";
import { isJsonObject, type JsonObject } from "../../shared/json.ts";
import { serverAddressSchema } from "../../shared/server-address.ts";
import { inputIssues, issuesText, plainly, validate } from "../../shared/validation.ts";
import { failedResult } from "./run-tool.ts";

/** The part of a call that its result needs. An operation occurs only once in a batch, because two calls would share one idempotency key. */
const batchSchema = z
  .array(z.looseObject({ operationId: identifier, toolCallId: z.string() }))
  .max(1_000)
  .refine(
    (calls) => new Set(calls.map(({ operationId }) => operationId)).size === calls.length,
    "An operation must occur only once in a batch.",
  );

const amount = z.number().min(0);

const absent = z.never().exactOptional();

/** A call comes from exactly one actor, so its result cannot reach another actor. */
const contextSchema = z.intersection(
  z.object({
    tenant: identifier,
    projectId: identifier,
    workspace: workspaceLinkSchema.exactOptional(),
    ...trailFields,
  }),
  z.union(
    [
      z.object({
        ...{ agentId: identifier, conversationId: identifier, turnId: identifier },
        ...{ runId: absent, node: absent },
      }),
      z.object({
        ...{ runId: identifier, node: identifier },
        ...{ agentId: absent, conversationId: absent, turnId: absent },
      }),
    ],
    "Must have either `agentId`, `conversationId` and `turnId`, or `runId` and `node`.",
  ),
);

const invocationSchema = z.object({
  operationId: identifier,
  attempt: z.int().min(1),
  toolCallId: z.string(),
  tool: z.object({ library: toolLibrarySchema, id: definitionIdSchema, version: z.int().min(0) }),
  task: z.custom<PinnedTask>(isPinnedTask, "A task of steps as it was pinned").exactOptional(),
  answer: elicitedAnswer.exactOptional(),
  remote: z.object({ url: serverAddressSchema, following: z.literal(true).exactOptional() }).exactOptional(),
  input: z.custom<JsonObject>(isJsonObject, "A tool's input is an object"),
  allowance: z
    .object({
      tokens: amount.exactOptional(),
      nanoDollars: amount.exactOptional(),
      modelCalls: amount.exactOptional(),
    })
    .exactOptional(),
  timeoutMs: z.int().min(1).max(MAX_TIMEOUT_MS),
  inlineBytes: z.int().min(0).max(MAX_OUTPUT_BYTES).exactOptional(),
  context: contextSchema,
  projectIds: z.array(definitionIdSchema).exactOptional(),
  skills: sentSkillsSchema.exactOptional(),
  memory: calledMemorySchema.exactOptional(),
});

/** The caller's actor has checked its pinned task. Other callers of the Executor may send anything. */
function isPinnedTask(value: unknown): boolean {
  return isJsonObject(value) && isJsonObject(value.inputSchema) && Array.isArray(value.steps);
}

/** Splits a batch into valid calls and error reports for the others. Throws `INVALID_INPUT` if it is not a batch of calls. */
export function readCalls(batch: unknown): { calls: ToolInvocation[]; refused: ExecutorReport[] } {
  const calls: ToolInvocation[] = [];
  const refused: ExecutorReport[] = [];
  for (const call of validate(batchSchema, batch, "", "The batch of calls")) {
    const parsed = invocationSchema.safeParse(call, { error: plainly });
    if (parsed.success) {
      calls.push(parsed.data);
      continue;
    }
    const message = `The call is not valid: ${issuesText(inputIssues(parsed.error))}`;
    const result = failedResult(call.toolCallId, new ToolError(message, { code: "INVALID_INPUT" }));
    refused.push({ operationId: call.operationId, result });
  }
  return { calls, refused };
}
