/** The input and the output of planning. Every change of a conversation's state is one of these decisions. */

import type { ModelReply } from "../../../model/reply.ts";
import type { Gate } from "../../../policy/gate.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import type { AttemptOutcome } from "./calls.ts";
import type { Operation } from "./operation.ts";
import type { DeferredModel, TurnRequest } from "./state.ts";

/** The input of planning beside the state and the signal. */
export interface PlanInput {
  /** Milliseconds since the epoch. */
  now: number;
  /** The stem for the ids of a turn that starts. */
  stem: string;
  gate: Gate;
  /** Time limit of a tool that a client runs, in milliseconds; ten minutes when absent. */
  clientToolTimeoutMs?: number;
}

export type AgentDecision =
  | ({ type: "START_TURN"; turn: number } & TurnRequest)
  /** Call the model, into a new message. A `final` call gets no tools. */
  | { type: "CALL_LLM"; turn: number; final: boolean }
  /** Record the outcome of an attempt of the present call. */
  | ({ type: "RECORD_ATTEMPT"; turn: number } & AttemptOutcome)
  /** Repeat a failed attempt, into the same message. `reset` withdraws text that was streamed. */
  | { type: "RETRY_LLM"; turn: number; error: ErrorData; notBefore: number; reset: boolean }
  /** Call another model of the chain, into the same message. `to` is the model's name. */
  | {
      type: "FALL_BACK";
      turn: number;
      error: ErrorData;
      to: string;
      model: DeferredModel;
      /** The models to which the call may come back. */
      deferred: readonly DeferredModel[];
      reset: boolean;
    }
  /** Withdraw an answer that does not fit its schema, and call the model again, into the same message. */
  | { type: "REPAIR_OUTPUT"; turn: number; text: string; problem: string }
  /** Keep a reply that its provider paused, and have the model continue it, in the same message. */
  | { type: "CONTINUE_REPLY"; turn: number; reply: ModelReply }
  /** Record a reply that calls tools. */
  | { type: "RECORD_MOVE"; turn: number; reply: ModelReply }
  | { type: "DISPATCH_TASK"; turn: number; operation: Omit<Operation, "item" | "reply"> }
  /** Wait until `deadline` for the result of a run that the actor no longer follows. */
  | { type: "INTERRUPT_TASK"; turn: number; item: number; deadline: number }
  | { type: "RESUME_FROM_TOOL"; turn: number; item: number; result: ToolResult }
  /** Wait: only results from a client are missing. */
  | { type: "WAIT_FOR_CLIENT"; turn: number }
  /** Record the reply that ends the turn. */
  | { type: "APPEND_MESSAGE"; turn: number; reply: ModelReply }
  | { type: "COMPLETE_TURN"; turn: number }
  | { type: "FAIL_TURN"; turn: number; error: ErrorData }
  /** Continue after a crash, no earlier than `notBefore`. `reset` withdraws text that may have been streamed. */
  | { type: "RESUME_TURN"; turn: number; notBefore: number; reset: boolean }
  /** Send an envelope to another actor, beside a decision that gives a journal entry. */
  | { type: "SEND"; envelope: NewEnvelope };
