/** The package `dramatis`: the runtime of an application, the library builders, and the session primitives. */

export type { ModelGateway, ModelProfile } from "./adapters/types.ts";
export { type ModelFormatAdapter, workersAIAdapter } from "./adapters/workers-ai.ts";
export type { AgentApi, AgentIdentity, CreateAgent } from "./agents/agent/api.ts";
export type {
  ConversationApi,
  CreateConversation,
  StartedTurn,
  StartTurn,
  SubscribeOptions,
  TurnView,
} from "./agents/conversation/api.ts";
export type { Gate, GateContext } from "./agents/conversation/planning/gate.ts";
export type { ActorAddress, Envelope, NewEnvelope } from "./agents/mailbox/envelope.ts";
export {
  type Delivery,
  NotNow,
  type OutcomeHandler,
  type ReceiveHandler,
  type ToldOutcome,
} from "./agents/mailbox/handlers.ts";
export type { Mailbox } from "./agents/mailbox/mailbox.ts";
export { newOperationId } from "./agents/mailbox/operation-id.ts";
export type { Outcome } from "./agents/mailbox/outbox-entry.ts";
export { SessionAgent } from "./agents/session-agent.ts";
export { D1DeadLetters } from "./directory/dead-letters.ts";
export { type DramatisEnv, type DramatisOptions, dramatis } from "./dramatis.ts";
export type { Authorize } from "./http/authorize.ts";
export { bearerToken } from "./http/bearer.ts";
export type { CorsOptions } from "./http/cors.ts";
export {
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
  type Library,
  type Tool,
  type ToolContext,
  type ToolOptions,
} from "./library/define.ts";
export { ToolError } from "./library/tool-error.ts";
export type { DefinitionReference, Persona, ToolDefinition, ToolEffect } from "./library/types.ts";
export {
  type Compaction,
  type CompactionPlan,
  type CompactOptions,
  type PlanCompactionOptions,
  planCompaction,
  type Summariser,
  type SummariserInput,
} from "./memory/compaction.ts";
export { dehydrateEvent, hydrateEvent } from "./memory/event-rows.ts";
export { eventToMessage, messageToEvent } from "./memory/events.ts";
export { extractiveSummariser } from "./memory/extractive-summary.ts";
export { type CountedTool, estimateTokens, type TokenCounter } from "./memory/tokens.ts";
export {
  type ContextBuilderOptions,
  type ContextMessage,
  EventAction,
  type LoadEventsOptions,
  type SessionEvent,
  type StoredEvent,
  type StoredSession,
  type ToolCall,
} from "./memory/types.ts";
export { type BuildContextOptions, buildWorkingContext, WorkingContext } from "./memory/working-context.ts";
export { DurableSqlDatabase } from "./ports/workers/durable-sql-database.ts";
export {
  DramatisError,
  type ErrorCode,
  type ErrorData,
  type InputIssue,
  type Result,
} from "./shared/errors.ts";
export type { Limits } from "./shared/limits.ts";
export type { Principal, Role } from "./shared/principal.ts";
export type { RateLimit } from "./shared/token-bucket.ts";
