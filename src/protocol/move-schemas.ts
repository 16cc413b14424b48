/** Schemas of the steps of turns: tool calls with their results, their agents and their approvals. */
import { z } from "zod";
import { APPROVAL_OUTCOMES, approvalRuleSchema, policyAskSchema } from "./approval-schema.ts";
import { turnCaller } from "./caller-schemas.ts";
import { elicitationView } from "./elicitation.ts";
import { anyValue, ids, runId, time } from "./scalars.ts";
import { taskViewSchema } from "./task-summary.ts";
import { spending } from "./usage-schemas.ts";

export const wireError = z
  .strictObject({ code: z.string(), message: z.string(), retriable: z.boolean() })
  .meta({ id: "Failure", description: "Why a turn or a tool call failed." });

export type WireError = z.infer<typeof wireError>;

/** The rule of a request, its requester, and the policy that asked. */
export const answeredBy = {
  policy: policyAskSchema
    .describe(
      "The rule of the policy that asked a person, with its reason. `taint` has the untrusted origins in the request that led to the call.",
    )
    .exactOptional(),
  rule: approvalRuleSchema
    .describe("Names who may answer; absent if everyone who may read the place of the request may answer.")
    .exactOptional(),
  requester: z.string().describe("The person who caused the work. Present with a rule.").exactOptional(),
  elicitation: elicitationView
    .describe(
      "The question of the MCP server that answers the call. An approval has `values` for its schema.",
    )
    .exactOptional(),
};

export const approval = z
  .strictObject({
    ...answeredBy,
    outcome: z.enum(APPROVAL_OUTCOMES).exactOptional(),
    expiresAt: time.exactOptional(),
    by: turnCaller.exactOptional(),
    reason: z.string().exactOptional(),
    at: time.exactOptional(),
  })
  .describe(
    "The approval of a call by a person. Without `outcome` the call waits for an answer until `expiresAt`.",
  );

/** The approval of an operation. The rule is present while the operation waits, if the tool has one. */
export type ApprovalView = z.infer<typeof approval>;

/** The target and the model's own input of a call that needs an approval. */
const runs = {
  modelInput: anyValue
    .describe("For calls that need approval: the model's own input, if the tool maps it to `input`.")
    .exactOptional(),
  target: z
    .string()
    .describe("For calls that need approval: the task or the workflow of the tool, if the tool has a target.")
    .exactOptional(),
};

export const calledAgent = z
  .strictObject({
    id: ids.agent,
    mode: z.enum(["delegate", "loop_in"]),
    template: z.string().describe("It works as a sub-agent: the name of its template.").exactOptional(),
    conversationId: ids.conversation.exactOptional(),
    spent: spending.exactOptional(),
    asks: z
      .array(
        z.strictObject({
          operationId: ids.operation,
          conversationId: ids.conversation,
          agentId: ids.agent,
          name: z.string(),
          input: anyValue.exactOptional(),
          ...runs,
          ...answeredBy,
          expiresAt: time,
        }),
      )
      .describe(
        "Calls of tools, by this agent or by one below it, that wait for a person. Answer one by its `operationId`, here.",
      )
      .exactOptional(),
  })
  .describe("The agent that answers the call, and its conversation.");

/** The call of an agent, as clients see it in addition to the operation. */
export type AgentCallView = z.infer<typeof calledAgent>;

const task = taskViewSchema.meta({
  id: "TaskRun",
  description:
    "The last attempt of a task of steps: its steps, their times and failures, and its use of models.",
});

export const move = z
  .strictObject({
    id: z.string(),
    sequence: z.int().min(1),
    reasoning: z.string().exactOptional(),
    toolCall: z
      .strictObject({
        operationId: ids.operation,
        name: z.string(),
        toolId: z.string().nullable(),
        input: anyValue,
        ...runs,
        client: z.literal(true).describe("The client runs the call.").exactOptional(),
        agent: calledAgent.exactOptional(),
        runId: runId
          .describe(
            "The run of a workflow that the call has started. Its starter, and operators, may read it.",
          )
          .exactOptional(),
        attempt: z
          .int()
          .min(2)
          .describe("Number of the present or last attempt; 1 when absent.")
          .exactOptional(),
        async: z.literal(true).describe("The call runs in the background.").exactOptional(),
        approval: approval.exactOptional(),
        task: task.exactOptional(),
      })
      .exactOptional(),
    toolResult: z
      .strictObject({
        success: z.boolean(),
        result: anyValue.exactOptional(),
        error: wireError.exactOptional(),
      })
      .exactOptional(),
    raw: anyValue
      .describe("The model's whole reply, on the first move that follows from it.")
      .exactOptional(),
    createdAt: time,
  })
  .meta({
    id: "Move",
    description: "One step of a turn: the model's reasoning, or a tool call and its result.",
  });

/** One iteration of a turn's loop. */
export type MoveView = z.infer<typeof move>;

export const usedMemories = z
  .array(z.strictObject({ id: z.string(), version: z.int().min(1) }))
  .describe("The memories that the model was shown or recalled, with the seen versions.");

export const memoryError = z
  .string()
  .describe("The error code if the agent's memory did not answer. The turn continued without memories.");
