/**
 * Ties a provider call to its conversation and turn: ids, labels and extensions for telemetry and policies. Providers never receive them.
 * Pure.
 */
import { defined } from "../shared/defined.ts";

/** The turn and the model of a provider call. */
export interface CallSite {
  conversationId: string;
  turnId: string;
  /** The logical agent. */
  agent: string;
  provider: string;
  model: string;
}

/** The urgency of a request, for policies. */
export type RequestClass = "interactive" | "background" | "batch";

export type CallOperation = "chat" | "embedding" | "other";

/** Properties of a request for policies and telemetry. */
export interface RequestExtensions {
  "ai.provider": string;
  "ai.model": string;
  "ai.request_type": CallOperation;
  "ai.streaming": boolean;
  "request.class": RequestClass;
}

/** The caller of a request, for telemetry and policies. */
export interface AgentContext {
  agent?: string;
  /** `{conversationId}:{turnId}`, or the id of the workflow's run. */
  runId?: string;
  labels?: Record<string, string>;
  metadata?: Record<string, unknown>;
}

/** Returns `{conversationId}:{turnId}`: the run id of a turn, and the correlation id of its calls. */
export function runIdOf(conversationId: string, turnId: string): string {
  return `${conversationId}:${turnId}`;
}

/**
 * Describes the caller of a call: agent, run and labels. Passes `metadata` on unchanged.
 *
 * @example agentContextOf({ conversationId, turnId, agent: "helper", provider: "openai", model: "gpt-4.1-mini" })
 */
export function agentContextOf(
  { agent, conversationId, turnId, provider, model }: CallSite,
  metadata?: Record<string, unknown>,
): AgentContext {
  return {
    agent,
    runId: runIdOf(conversationId, turnId),
    labels: { conversationId, turnId, provider, model },
    ...defined({ metadata }),
  };
}

/**
 * Returns the extensions of a call. Defaults to an interactive chat.
 *
 * @example extensionsOf({ provider: "openai", model: "gpt-4.1-mini" }, { streaming: true, requestClass: "batch" })
 */
export function extensionsOf(
  { provider, model }: Pick<CallSite, "provider" | "model">,
  call: { streaming: boolean; operation?: CallOperation; requestClass?: RequestClass },
): RequestExtensions {
  return {
    "ai.provider": provider,
    "ai.model": model,
    "ai.request_type": call.operation ?? "chat",
    "ai.streaming": call.streaming,
    "request.class": call.requestClass ?? "interactive",
  };
}
