/** What planning decides and the reducer applies: every change of a conversation's state is one of these. */

import type { ModelContext, OutputSpec, ToolSpec } from "../../../model/context.ts";
import type { ModelReply } from "../../../model/reply.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import type { Caller } from "../../../protocol/views.ts";
import type { Content } from "../../../shared/content.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { AttemptOutcome } from "./calls.ts";
import type { Operation } from "./state.ts";

export type AgentDecision =
  | {
      type: "START_TURN";
      turn: number;
      stem: string;
      agentId: string;
      caller: Caller;
      clientId?: string;
      content: Content;
      replyTo?: string;
      output?: OutputSpec;
      tools?: readonly ToolSpec[];
      toolChoice?: ModelContext["toolChoice"];
    }
  /** Ask the model, into a new message. `final` calls get no tools. */
  | { type: "CALL_LLM"; turn: number; final: boolean }
  /** Keep what an attempt of the present call took and came to. */
  | ({ type: "RECORD_ATTEMPT"; turn: number } & AttemptOutcome)
  /** Ask again, into the same message, after a failed attempt. */
  | { type: "RETRY_LLM"; turn: number; error: ErrorData; notBefore: number; reset: boolean }
  /** Ask the next of the chain's models, into the same message: this one has failed for good. `to` is its name. */
  | { type: "FALL_BACK"; turn: number; error: ErrorData; to: string; reset: boolean }
  /** Take the answer back, tell the model what is wrong with it, and ask again, into the same message. */
  | { type: "REPAIR_OUTPUT"; turn: number; text: string; problem: string }
  /** Take back text that was shown: the call is made again. */
  | { type: "RESET_MESSAGE"; turn: number; reason: string }
  /** Keep a reply that calls tools: its text is the reasoning of the moves that follow. */
  | { type: "RECORD_MOVE"; turn: number; reply: ModelReply }
  | { type: "DISPATCH_TASK"; turn: number; operation: Omit<Operation, "item" | "reply"> }
  | { type: "RESUME_FROM_TOOL"; turn: number; item: number; result: ToolResult }
  /** Nothing is left to do here but to wait for results from a client. */
  | { type: "WAIT_FOR_CLIENT"; turn: number }
  /** Keep a reply that ends the turn: its text is the agent's message. */
  | { type: "APPEND_MESSAGE"; turn: number; reply: ModelReply }
  | { type: "COMPLETE_TURN"; turn: number }
  | { type: "FAIL_TURN"; turn: number; error: ErrorData }
  | { type: "RESUME_TURN"; turn: number };
