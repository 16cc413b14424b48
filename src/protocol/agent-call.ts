/**
 * Agent-to-agent calls: the envelopes between the caller's conversation and the called conversation, with schemas for
 * both sides.
 *
 * AGENTCALL-1  The id of the called conversation derives from the operation and its attempt. Only the conversation
 *              with the operation can open it, even if the call arrives several times.
 */
import { z } from "zod";
import { trailFields } from "../shared/call-trail.ts";
import type { Result } from "../shared/errors.ts";
import { agentIdSchema, definitionIdSchema } from "../shared/id-schemas.ts";
import { isJsonObject, isJsonWithin, type JsonObject } from "../shared/json.ts";
import { APPROVAL_OUTCOMES, approvalRuleSchema, policyAskSchema } from "./approval-schema.ts";
import { amountsSchema, budgetSchema } from "./budget.ts";
import { callAddressSchema } from "./call-address.ts";
import { elicitationView } from "./elicitation.ts";
import { toolErrorFields } from "./executor-api.ts";
import { resultExcerptSchema } from "./large-result.ts";
import type { AgentCallView } from "./move-schemas.ts";
import { subAgentBoundsSchema } from "./sub-agent.ts";
import { workspaceLinkSchema } from "./workspace.ts";

/** Asks for one turn of an agent, in a conversation of its own. */
export const AGENT_CALL = "agent.call";
/** Brings the end of that turn to its caller. */
export const AGENT_RESULT = "agent.result";
/** Stops the call. */
export const AGENT_CANCEL = "agent.cancel";

/** Updates who may read the called conversation. */
export const AGENT_READERS = "agent.readers";

/** Tells the caller that the agent, or one below it, asks a person to approve a call, and the answer. */
export const AGENT_ASK = "agent.ask";

/**
 * Maximum number of requests for approval that an open call shows at a time. Further requests appear only in the
 * agent's conversation.
 */
export const MAX_ASKS = 32;

/** Requests for approval that all open calls of a conversation show at a time, as `MAX_ASKS`. */
export const MAX_CONVERSATION_ASKS = 64;

/** Length of the input that a request for approval shows above the agent that asks, as JSON. A larger one is shown there only. */
const MAX_ASKED_LENGTH = 4 * 1024;

/** Length of an answer in an envelope, in UTF-16 units. A longer answer is shortened. */
export const MAX_ANSWER_LENGTH = 128 * 1024;

/** Bytes of an answer in an envelope, as JSON. A longer answer is shortened. With the reason of a failure it fits into an envelope. */
export const MAX_ANSWER_BYTES = 512 * 1024;

/** Bytes of the reason of a failure that goes back to a caller, as JSON. */
export const MAX_REASON_BYTES = 64 * 1024;

/** Length of the message of a call, in UTF-16 units. */
export const MAX_CALL_LENGTH = 128 * 1024;

/** Bytes of the message of a call, as JSON. */
export const MAX_CALL_BYTES = 512 * 1024;

/** Levels of the input that a request for approval shows above the agent that asks: its envelope has some more. */
const MAX_ASKED_DEPTH = 56;

/** A call of a tool that waits for a person: its operation, in the conversation of the agent that asks. */
export type AskView = NonNullable<AgentCallView["asks"]>[number];

const label = z.string().min(1).max(200);
const readers = z.array(label).max(100);
const readersSeq = z.int().min(0);

/** The caller of an agent: an agent in one of its turns, or a node of a run. */
const agentCallerSchema = z.union([
  z.object({ agentId: agentIdSchema, turnId: label }),
  z.object({ runId: label, node: label.exactOptional() }),
]);

export const agentCallSchema = callAddressSchema.extend({
  /** The agent that is called. */
  agentId: agentIdSchema,
  caller: agentCallerSchema,
  /** The message: all that the agent gets. */
  content: z.string().min(1).max(MAX_CALL_LENGTH),
  /** Projects that both agents share. The caller's own project is first. */
  projectIds: z.array(definitionIdSchema).min(1).max(100),
  /** The chain of calling agents, from the first agent to the caller. For a run: the agents that wait for it. */
  path: z.array(agentIdSchema).max(100),
  /** Users who may read the conversation that the call opens. */
  readers,
  /** As in `AgentReadersBody`. */
  readersSeq: readersSeq.exactOptional(),
  /** The person at the root of the calls (WHO-2). Absent if the person is unknown. */
  requester: label.exactOptional(),
  /** The part of the caller's budget that the call may use up. Absent if the caller has no budget. */
  budget: budgetSchema.exactOptional(),
  /** The calls of agents that may be open below it at a time. If absent, as many as a user's conversation may have. */
  calls: z.int().min(0).exactOptional(),
  /** When the call ends unless it has a result, in milliseconds since the epoch. */
  deadline: z.int(),
  ...trailFields,
  correlationId: label,
  /** The bounds of a sub-agent. Absent if the agent works without extra bounds. */
  bounds: subAgentBoundsSchema.exactOptional(),
  workspace: workspaceLinkSchema.exactOptional(),
  /** A run waits for the caller, at any distance. A run that calls does not set it. */
  worksForRun: z.literal(true).exactOptional(),
});

export type AgentCallBody = z.infer<typeof agentCallSchema>;

const answered = z.object({ text: z.string() });
const failed = z.object({
  error: z.object(toolErrorFields),
  /** The text that the agent had written. */
  partial: z.string().exactOptional(),
});

/** The end of a call: the agent's answer, or its error. The caller shows `view` in place of the text. No envelope has a view. */
export type AgentOutcome = (z.infer<typeof answered> & { view?: JsonObject }) | z.infer<typeof failed>;

export const agentResultSchema = callAddressSchema.extend({
  /** Absent in a later report. A later report adds the usage of nested calls that ended after this call. */
  outcome: z.union([answered, failed]).exactOptional(),
  /** The excerpt of a shortened answer. */
  large: resultExcerptSchema.exactOptional(),
  /** The amounts that the call has used up, with all calls that it has made, and not reported before. */
  spent: amountsSchema,
});

export type AgentResultBody = z.infer<typeof agentResultSchema>;

/** Zod's records leave out `__proto__`, which the tool would get. */
const exactInput = z.custom<JsonObject>(isJsonObject, "Must be an object.");

const callAskSchema = z.object({
  operationId: callAddressSchema.shape.operationId,
  conversationId: label,
  agentId: agentIdSchema,
  name: label,
  /** The exact input of the call. Absent if it is too large. The agent's conversation shows it. */
  input: exactInput.exactOptional(),
  /** The model's own input. Absent if the tool does not map it, and if it is too large. */
  modelInput: exactInput.exactOptional(),
  /** The task that runs, as `library/id`. Absent if the tool names no task. */
  target: label.exactOptional(),
  rule: approvalRuleSchema.exactOptional(),
  requester: label.exactOptional(),
  policy: policyAskSchema.exactOptional(),
  elicitation: elicitationView.exactOptional(),
  /** Milliseconds since the epoch. */
  expiresAt: z.int(),
});

export type CallAsk = z.infer<typeof callAskSchema>;

export const agentAskSchema = callAddressSchema.extend({
  ask: callAskSchema,
  /** Absent while the call waits. A call that was stopped has `expired`. */
  outcome: z.enum(APPROVAL_OUTCOMES).exactOptional(),
});

export type AgentAskBody = z.infer<typeof agentAskSchema>;

export const agentReadersSchema = callAddressSchema.extend({
  readers,
  /** Number of the list. A later list of the same caller has a higher number. */
  readersSeq,
});

export type AgentReadersBody = z.infer<typeof agentReadersSchema>;

export const agentCancelSchema = callAddressSchema.extend({ reason: z.string().max(500).exactOptional() });

export type AgentCancelBody = z.infer<typeof agentCancelSchema>;

/** The amounts that the call has used up. Default: 0. */
const spent = amountsSchema.exactOptional();

export const agentAnswerSchema = z.strictObject({
  ...callAddressSchema.shape,
  text: z.string().max(MAX_ANSWER_LENGTH),
  spent,
});

export type AgentResult = z.infer<typeof agentAnswerSchema>;

export const agentErrorSchema = z.strictObject({
  ...callAddressSchema.shape,
  error: z.object(toolErrorFields),
  /** The text that the agent had written. */
  partial: z.string().max(MAX_ANSWER_LENGTH).exactOptional(),
  spent,
});

export type AgentError = z.infer<typeof agentErrorSchema>;

/** Returns an input if it is small enough for the view of the calling agent. */
export function shownInput(input: JsonObject): JsonObject | undefined {
  const isSmall = isJsonWithin(input, MAX_ASKED_DEPTH) && JSON.stringify(input).length <= MAX_ASKED_LENGTH;
  return isSmall ? input : undefined;
}

/** The methods of a `Conversation` for ends of calls that do not arrive by envelope. Only Workers with a binding reach it. */
export interface AgentResultApi {
  /**
   * Accepts the answer if the operation still waits for this attempt, and ignores it otherwise. `NOT_FOUND` for an
   * unknown operation.
   */
  handleAgentResult(result: AgentResult): Promise<Result<null>>;
  /** As `handleAgentResult`, for a failure. */
  handleAgentError(error: AgentError): Promise<Result<null>>;
}
