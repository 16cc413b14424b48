/** The exports of `dramatis/actors` that work on Workers and in Node. */

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
export { bearerToken } from "./http/auth/bearer.ts";
export type {
  MetadataValue,
  StoredVector,
  VectorIndex,
  VectorMatch,
  VectorQuery,
} from "./ports/vector-index.ts";
export { VectorizeVectorIndex } from "./ports/workers/vectorize-index.ts";
export type { AgentApi, AgentIdentity, AgentView, CreateAgent } from "./protocol/agent-api.ts";
export type { AgentResultApi } from "./protocol/agent-call.ts";
export type { ChannelApi, ChannelInput, ChannelMail } from "./protocol/channels.ts";
export type { ConversationApi } from "./protocol/conversation-api.ts";
export type { CreateConversation, SubscribeOptions } from "./protocol/conversation-requests.ts";
export type { CompletedOperation, TurnView } from "./protocol/conversation-schemas.ts";
export type { CoordinatorApi, FollowRun, StartRun } from "./protocol/coordinator-api.ts";
export type { ActorAddress, Envelope, NewEnvelope } from "./protocol/envelope.ts";
export type { EventLogApi } from "./protocol/event-log.ts";
export type { TaskErrorApi, TaskExecutor, TaskResultApi, ToolStateApi } from "./protocol/executor-api.ts";
export type { WholeResultApi } from "./protocol/large-result.ts";
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
export type { PastTurnsApi } from "./protocol/tool-memory.ts";
export type { CreateTrigger, TriggerApi, TriggerStarted, TriggerView } from "./protocol/trigger-api.ts";
export type { RunCallerApi, WorkflowResultApi } from "./protocol/workflow-call.ts";
export type { WorkspaceApi, WorkspaceCall, WorkspaceCommits, WorkspaceView } from "./protocol/workspace.ts";
export { type Jurisdiction, type LocationHint, locationOf } from "./shared/location.ts";
