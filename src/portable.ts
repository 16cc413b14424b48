/** The exports of the package `dramatis` that work on Workers and in Node: the library builders, the session primitives, and all types. */

export { workersAIAdapter } from "./adapters/formats/workers-ai/adapter.ts";
export { type OtlpOptions, otlpExporter } from "./adapters/telemetry/otlp-exporter.ts";
export type { DurableActor } from "./agents/base/durable-actor.ts";
export { newConversationId } from "./agents/base/lookup/conversation-id.ts";
export {
  type Delivery,
  type DeliveryOutcome,
  NotNow,
  type OutcomeHandler,
  type ReceiveHandler,
} from "./agents/base/mailbox/handlers.ts";
export type { Mailbox } from "./agents/base/mailbox/mailbox.ts";
export { newOperationId } from "./agents/base/mailbox/operation-id.ts";
export type { Outcome } from "./agents/base/mailbox/outbox-entry.ts";
export { D1DeadLetters } from "./d1/dead-letters.ts";
export type { Authorize } from "./http/auth/authorize.ts";
export { bearerToken } from "./http/auth/bearer.ts";
export type { CorsOptions } from "./http/auth/cors.ts";
export type { Limits } from "./http/base/http-limits.ts";
export * as team from "./library/agents/team.ts";
export {
  type Defined,
  defineLibrary,
  defineModelProfile,
  definePersona,
  defineTool,
  type Library,
  type PersonaOptions,
  type Tool,
  type ToolContext,
  type ToolOptions,
} from "./library/define/define.ts";
export { type AgentInCode, type AgentOptions, defineAgent } from "./library/define/define-agent.ts";
export { defineSubAgent, type SubAgentOptions } from "./library/define/define-sub-agent.ts";
export {
  defineAction,
  definePrompt,
  defineTask,
  type FunctionTaskOptions,
  type NamedActionOptions,
  type StepsTaskOptions,
  type TaskOptions,
} from "./library/define/define-task.ts";
export {
  defineWorkflow,
  type Embedded,
  type NodeInCode,
  type NodeOptions,
  node,
  type TransitionInCode,
  type TransitionOptions,
  transition,
  type Workflow,
  type WorkflowOptions,
} from "./library/define/define-workflow.ts";
export * as strategies from "./library/strategies/strategies.ts";
export type {
  CodeAction,
  DefinedPersona,
  LibraryAction,
  NamedAction,
  Prompt,
  Task,
} from "./library/tasks/built.ts";
export { type Action, type Step, type StepOptions, step } from "./library/tasks/step.ts";
export type { DeferOptions, Deferred } from "./library/tools/deferred.ts";
export { ToolError } from "./library/tools/tool-error.ts";
export {
  type Compaction,
  type CompactionPlan,
  type CompactOptions,
  type PlanCompactionOptions,
  planCompaction,
  type Summariser,
  type SummariserInput,
} from "./memory/session/compaction.ts";
export { dehydrateEvent, hydrateEvent } from "./memory/session/event-rows.ts";
export { eventToMessage, messageToEvent } from "./memory/session/events.ts";
export {
  EventAction,
  type LoadEventsOptions,
  type SessionEvent,
  type StoredEvent,
  type StoredSession,
} from "./memory/session/session-event.ts";
export {
  extractiveSummariser,
  type ModelSummariserOptions,
  modelSummariser,
} from "./memory/session/summarisers.ts";
export { type CountedTool, estimateTokens, type TokenCounter } from "./memory/session/tokens.ts";
export {
  type BuildContextOptions,
  buildWorkingContext,
  type ContextBuilderOptions,
  WorkingContext,
} from "./memory/session/working-context.ts";
export type { ModelFormatAdapter } from "./model/format-adapter.ts";
export type { ModelGateway } from "./model/gateway.ts";
export type { ContextMessage, ToolCall } from "./model/messages.ts";
export type { ModelProfile } from "./model/profile.ts";
export type { Span, SpanAttributes, SpanExporter } from "./model/span.ts";
export type { DramatisEnv, DramatisOptions } from "./options.ts";
export type { Gate, GateContext } from "./policy/gate.ts";
export type {
  MetadataValue,
  StoredVector,
  VectorIndex,
  VectorMatch,
  VectorQuery,
} from "./ports/vector-index.ts";
export { DurableSqlDatabase } from "./ports/workers/durable-storage.ts";
export { VectorizeVectorIndex } from "./ports/workers/vectorize-index.ts";
export type { AgentApi, AgentIdentity, AgentView, CreateAgent } from "./protocol/agent-api.ts";
export type { AgentResultApi } from "./protocol/agent-call.ts";
export type { ApprovalNeed, ApprovalRule } from "./protocol/approval-schema.ts";
export type { ConversationApi } from "./protocol/conversation-api.ts";
export type { CreateConversation, SubscribeOptions } from "./protocol/conversation-requests.ts";
export type { CompletedOperation, TurnView } from "./protocol/conversation-schemas.ts";
export type { CoordinatorApi, FollowRun, StartRun } from "./protocol/coordinator-api.ts";
export type { Persona, PersonaSource, ToolDefinition, ToolEffect } from "./protocol/definitions.ts";
export type { ActorAddress, Envelope, NewEnvelope } from "./protocol/envelope.ts";
export type { EventLogApi } from "./protocol/event-log.ts";
export type { TaskErrorApi, TaskExecutor, TaskResultApi, ToolStateApi } from "./protocol/executor-api.ts";
export type { WholeResultApi } from "./protocol/large-result.ts";
export type { LocationPolicy } from "./protocol/location-policy.ts";
export type { DeferApi } from "./protocol/operation-handle.ts";
export type { StartTurn, ToolOutcome } from "./protocol/requests.ts";
export type { ChildRunApi } from "./protocol/run-call.ts";
export type {
  ActiveToken,
  RunEntryView,
  RunEvent,
  RunStreamError,
  RunSummary,
  RunView,
  RunWorkflow,
} from "./protocol/run-schemas.ts";
export type { AcceptedSignal, SignalEnvelope } from "./protocol/signal-schemas.ts";
export type { SignalResult, StartedTurn } from "./protocol/signals.ts";
export {
  CONVERSATION_FRAMES,
  type ConversationFrames,
  conversationFrames,
  type OmittedFrame,
  type SubscribeActor,
  type SubscribedFrame,
} from "./protocol/subscribers.ts";
export type {
  ActionDefinition,
  PinnedTask,
  PromptDefinition,
  StepDefinition,
  StepOutcome,
  StepSettings,
  TaskDefinition,
  TaskRetry,
} from "./protocol/task-definition.ts";
export type { PastTurnsApi } from "./protocol/tool-memory.ts";
export type { CreateTrigger, TriggerApi, TriggerStarted, TriggerView } from "./protocol/trigger-api.ts";
export type { RunCallerApi, WorkflowResultApi } from "./protocol/workflow-call.ts";
export type {
  WorkflowDefinition,
  WorkflowMerge,
  WorkflowNode,
  WorkflowSynchronization,
  WorkflowTransition,
} from "./protocol/workflow-definition.ts";
export {
  DramatisError,
  type ErrorCode,
  type ErrorData,
  type InputIssue,
  type Result,
} from "./shared/errors.ts";
export type { DefinitionReference } from "./shared/identifiers.ts";
export type { Json, JsonObject } from "./shared/json.ts";
export { type Jurisdiction, type LocationHint, locationOf } from "./shared/location.ts";
export type { Principal } from "./shared/principal.ts";
export type { Role } from "./shared/roles.ts";
export type { RateLimit } from "./shared/token-bucket.ts";
