/**
 * How a provider call is tied to its conversation and turn: ids, labels and extensions that telemetry and policies
 * read. They describe a request and reach no provider. Pure.
 */
import { defined } from "../shared/defined.ts";

/** What one provider call is made for. */
export interface CallSite {
  conversationId: string;
  turnId: string;
  /** The logical agent. */
  agent: string;
  provider: string;
  model: string;
}

/** How urgent a request is, for policies. */
export type RequestClass = "interactive" | "background" | "batch";

/** The kind of a provider call. */
export type CallOperation = "chat" | "embedding" | "other";

/** What policies and telemetry know of a request. */
export interface RequestExtensions {
  "ai.provider": string;
  "ai.model": string;
  "ai.request_type": CallOperation;
  "ai.streaming": boolean;
  "request.class": RequestClass;
}

/** `{conversationId}:{turnId}`: the run id of a turn, and the correlation id of its calls. */
export function runIdOf(conversationId: string, turnId: string): string {
  return `${conversationId}:${turnId}`;
}

/** Who makes a call: the agent, the run, and the four labels. `metadata` is passed on as it is. */
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

/** The extensions of a call: a chat that a person waits for, unless it is said otherwise. */
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

/** Who makes a request, for telemetry and policies. */
export interface AgentContext {
  agent?: string;
  /** `{conversationId}:{turnId}`. */
  runId?: string;
  labels?: Record<string, string>;
  metadata?: Record<string, unknown>;
}
