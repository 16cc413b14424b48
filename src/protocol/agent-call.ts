/**
 * Calls of agents by agents: the envelopes between the conversation of the caller and the one that a call opens, with the schemas
 * for both sides.
 *
 * AGENTCALL-1  The id of the conversation that a call opens derives from the operation and its attempt. Only the conversation with
 *              the operation can open it, however often the call arrives.
 */
import { z } from "zod";
import type { Amounts } from "../model/spending.ts";
import { type CallTrail, trailFields } from "../shared/call-trail.ts";
import type { Result } from "../shared/errors.ts";
import { agentIdSchema, definitionIdSchema } from "../shared/id-schemas.ts";
import { isOperationId } from "../shared/identifiers.ts";
import { isJsonObject, isJsonWithin, type JsonObject, type JsonValue } from "../shared/json.ts";
import type { AnsweredBy, ApprovalOutcome } from "./approval.ts";
import { approvalRuleSchema } from "./approval-schema.ts";
import { amountsSchema, type Budget, budgetSchema, type SpendingView } from "./budget.ts";
import type { AgentMode } from "./definitions.ts";
import { TOOL_ERROR_CODES, type ToolErrorCode } from "./executor-api.ts";
import { type ResultExcerpt, resultExcerptSchema } from "./large-result.ts";
import { type SubAgentBounds, subAgentBoundsSchema } from "./sub-agent.ts";

/** Asks for one turn of an agent, in a conversation of its own. */
export const AGENT_CALL = "agent.call";
/** Brings the end of that turn to its caller. */
export const AGENT_RESULT = "agent.result";
/** Stops the call. */
export const AGENT_CANCEL = "agent.cancel";

/** Tells who may read the conversation that the call opened, where that changes. */
export const AGENT_READERS = "agent.readers";

/** Tells the caller that the agent, or one below it, asks a person to approve a call, and the answer. */
export const AGENT_ASK = "agent.ask";

/** Requests for approval that an open call shows at a time. Further ones are shown in the agent's conversation only. */
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

/** The call of an agent, as clients see it beside the operation. */
export interface AgentCallView {
  /** The agent that is called. */
  id: string;
  mode: AgentMode;
  /** It works as a sub-agent: the name of its template. */
  template?: string;
  /** The conversation in which the agent works; absent where it joins the caller's. */
  conversationId?: string;
  /** What the call has used up, with all calls that it has made; absent while it runs. */
  spent?: SpendingView;
  /** The calls of tools, by this agent or by one that it called, that wait for a person; absent where there are none. */
  asks?: AskView[];
}

/** A call of a tool that waits for a person: its operation, in the conversation of the agent that asks. */
export interface AskView extends Omit<CallAsk, "expiresAt" | "input" | "modelInput"> {
  input?: JsonValue;
  modelInput?: JsonValue;
  expiresAt: string;
}

/** The call that opened a conversation, as clients see it. */
export type CalledByView =
  | { agentId: string; turnId: string; conversationId: string }
  | { runId: string; node?: string };

/** The operation that a call or its result belongs to. */
interface CallAddress {
  operationId: string;
  /** From 1. */
  attempt: number;
}

/** The caller of an agent: an agent in one of its turns, or a node of a run. */
export type AgentCaller = { agentId: string; turnId: string } | { runId: string; node?: string };

/** The body of `agent.call`. */
export interface AgentCallBody extends CallAddress, CallTrail {
  /** The agent that is called. */
  agentId: string;
  caller: AgentCaller;
  /** The message: all that the agent gets. */
  content: string;
  /** The projects in which both may work, the caller's own first. */
  projectIds: string[];
  /** The agents that called each other, the first one first, the caller last. Of a run: those that wait for it. */
  path: string[];
  /** Users who may read the conversation that the call opens. */
  readers: string[];
  /** As in `AgentReadersBody`. */
  readersSeq?: number;
  /** The person at the root of the calls (WHO-2). Absent in calls of an older release, and if the person is unknown. */
  requester?: string;
  /** The part of the caller's budget that the call may use up; absent where it has none. */
  budget?: Budget;
  /** The calls of agents that may be open below it at a time; absent from an older release, for as many as a user's conversation. */
  calls?: number;
  /** When the call ends unless it has a result, in milliseconds since the epoch. */
  deadline: number;
  correlationId: string;
  /** The bounds of the sub-agent; absent where the agent works as it is. */
  bounds?: SubAgentBounds;
}

/** The body of `agent.result`. */
export interface AgentResultBody extends CallAddress {
  /** Absent in a later report: calls below, which ended after this one, have used up more. */
  outcome?: AgentOutcome;
  /** The excerpt of a shortened answer. */
  large?: ResultExcerpt;
  /** What the call has used up, with all calls that it has made, and not reported before. */
  spent: Amounts;
}

/** The end of a call: the agent's answer, or its error, with the text that it had written. */
export type AgentOutcome =
  | {
      text: string /** Takes the place of the text at the caller. It is in no envelope. */;
      view?: JsonObject;
    }
  | { error: { code: ToolErrorCode; message: string; retriable: boolean }; partial?: string };

/** A call of a tool that waits for a person. */
export interface CallAsk extends AnsweredBy {
  operationId: string;
  conversationId: string;
  agentId: string;
  name: string;
  /** The input with which the call runs. Absent where it is too large: it is shown in the agent's conversation. */
  input?: JsonObject;
  /** The model's own input; absent where the tool does not map it, and where it is too large. */
  modelInput?: JsonObject;
  /** The task that runs, as `library/id`; absent where the tool names none. */
  target?: string;
  /** Milliseconds since the epoch. */
  expiresAt: number;
}

/** The body of `agent.ask`. */
export interface AgentAskBody extends CallAddress {
  ask: CallAsk;
  /** Absent while the call waits. A call that was stopped has `expired`. */
  outcome?: ApprovalOutcome;
}

/** The body of `agent.readers`. */
export interface AgentReadersBody extends CallAddress {
  readers: string[];
  /** Number of the list: a later one of the same caller has a higher number. Absent from an older release. */
  readersSeq?: number;
}

/** The body of `agent.cancel`. */
export interface AgentCancelBody extends CallAddress {
  reason?: string;
}

const address = {
  operationId: z.string().refine(isOperationId, "Must be the id of an operation."),
  attempt: z.int().min(1),
};
const label = z.string().min(1).max(200);
const readers = { readers: z.array(label).max(100), readersSeq: z.int().min(0).exactOptional() };
const error = z.object({ code: z.enum(TOOL_ERROR_CODES), message: z.string(), retriable: z.boolean() });

export const agentCallSchema: z.ZodType<AgentCallBody> = z.object({
  ...address,
  agentId: agentIdSchema,
  caller: z.union([
    z.object({ agentId: agentIdSchema, turnId: label }),
    z.object({ runId: label, node: label.exactOptional() }),
  ]),
  content: z.string().min(1).max(MAX_CALL_LENGTH),
  projectIds: z.array(definitionIdSchema).min(1).max(100),
  path: z.array(agentIdSchema).max(100),
  ...readers,
  requester: label.exactOptional(),
  budget: budgetSchema.exactOptional(),
  calls: z.int().min(0).exactOptional(),
  deadline: z.int(),
  ...trailFields,
  correlationId: label,
  bounds: subAgentBoundsSchema.exactOptional(),
});

export const agentResultSchema: z.ZodType<AgentResultBody> = z.object({
  ...address,
  outcome: z
    .union([
      z.object({ text: z.string() }),
      z.object({
        error,
        partial: z.string().exactOptional(),
      }),
    ])
    .exactOptional(),
  large: resultExcerptSchema.exactOptional(),
  spent: amountsSchema,
});

/** Zod's records leave out `__proto__`, which the tool would get. */
const exactInput = z.custom<JsonObject>(isJsonObject, "Must be an object.");

export const agentAskSchema: z.ZodType<AgentAskBody> = z.object({
  ...address,
  ask: z.object({
    operationId: address.operationId,
    conversationId: label,
    agentId: agentIdSchema,
    name: label,
    input: exactInput.exactOptional(),
    modelInput: exactInput.exactOptional(),
    target: label.exactOptional(),
    rule: approvalRuleSchema.exactOptional(),
    requester: label.exactOptional(),
    expiresAt: z.int(),
  }),
  outcome: z.enum(["approved", "denied", "expired", "superseded"]).exactOptional(),
});

/** Returns an input where it is small enough to be shown above the agent that asks. */
export function shownInput(input: JsonObject): JsonObject | undefined {
  const isSmall = isJsonWithin(input, MAX_ASKED_DEPTH) && JSON.stringify(input).length <= MAX_ASKED_LENGTH;
  return isSmall ? input : undefined;
}

export const agentReadersSchema: z.ZodType<AgentReadersBody> = z.object({
  ...address,
  ...readers,
});

export const agentCancelSchema: z.ZodType<AgentCancelBody> = z.object({
  ...address,
  reason: z.string().max(500).exactOptional(),
});

/** The answer of an agent, by RPC. */
export interface AgentResult extends CallAddress {
  text: string;
  /** What the call has used up; nothing when absent. */
  spent?: Amounts;
}

/** The failure of an agent, by RPC. */
export interface AgentError extends CallAddress {
  error: { code: ToolErrorCode; message: string; retriable: boolean };
  /** The text that the agent had written. */
  partial?: string;
  /** What the call has used up; nothing when absent. */
  spent?: Amounts;
}

export const agentAnswerSchema: z.ZodType<AgentResult> = z.strictObject({
  ...address,
  text: z.string().max(MAX_ANSWER_LENGTH),
  spent: amountsSchema.exactOptional(),
});

export const agentErrorSchema: z.ZodType<AgentError> = z.strictObject({
  ...address,
  error,
  partial: z.string().max(MAX_ANSWER_LENGTH).exactOptional(),
  spent: amountsSchema.exactOptional(),
});

/** The door of a `Conversation` for ends of calls that do not come by envelope. Only Workers with a binding reach it. */
export interface AgentResultApi {
  /** Takes the answer if the operation still waits for this attempt, and changes nothing otherwise. `NOT_FOUND` for an unknown operation. */
  handleAgentResult(result: AgentResult): Promise<Result<null>>;
  /** As `handleAgentResult`, for a failure. */
  handleAgentError(error: AgentError): Promise<Result<null>>;
}
