/**
 * Entry `dramatis/client`: conversations from any JavaScript program, without a framework.
 *
 * CLIENTSIZE-1  The bundle of a browser contains no schemas. Files of `protocol` with zod are imported for their types only.
 */
export type { ToolSpec } from "../model/context.ts";
export type { ContextMessage } from "../model/messages.ts";
export type { AgentIdentity, AgentSummary, AgentView } from "../protocol/agent-api.ts";
export type { AnsweredBy, ApprovalOutcome } from "../protocol/approval.ts";
export { mayAnswer, whoMayAnswer } from "../protocol/approval.ts";
export type { ApprovalRule } from "../protocol/approval-schema.ts";
export type { ArtifactSummary, ArtifactView, WrittenArtifact } from "../protocol/artifacts.ts";
export type { Budget } from "../protocol/budget.ts";
export type { TurnIssues } from "../protocol/caller-schemas.ts";
export type { UpdateConversation } from "../protocol/conversation-requests.ts";
export type {
  AttachmentView,
  ConversationSummary,
  ConversationView,
  DeadLetterView,
  ImportedConversation,
  JournalEntryView,
  MessageView,
  ResolvedApproval,
  TurnOrder,
  TurnSummary,
  TurnView,
} from "../protocol/conversation-schemas.ts";
export type { RetryRun } from "../protocol/coordinator-api.ts";
export type { ElicitationView } from "../protocol/elicitation.ts";
export type { FoundMessage, LoggedEvent } from "../protocol/event-log.ts";
export type { Frame, FrameType } from "../protocol/frames.ts";
export type { MemoryFilter } from "../protocol/memory.ts";
export type { MemoryChange, MemoryInput, MemoryQuery } from "../protocol/memory-requests.ts";
export type {
  AgentsSearchResult,
  Memory,
  MemoryMatch,
  MemoryScore,
  MemorySearchResult,
  MemoryStatus,
  MemorySubject,
  MemoryWhy,
} from "../protocol/memory-schemas.ts";
export type { ApprovalView, WireError } from "../protocol/move-schemas.ts";
export type { Projection, ProjectionName } from "../protocol/projection-schemas.ts";
export type { Branches, Project, ProjectRepository, ProjectSummary } from "../protocol/projects.ts";
export type { TurnPrompt } from "../protocol/prompt.ts";
export type {
  CauseChain,
  CauseOptions,
  Incident,
  IncidentKind,
  IncidentOptions,
} from "../protocol/record-schemas.ts";
export type { TurnRecording, TurnReplay } from "../protocol/recording.ts";
export type {
  ApprovalAnswer,
  ClientToolError,
  StartTurn,
  StopOptions,
  ToolChoice,
  ToolOutcome,
} from "../protocol/requests.ts";
export type {
  ActiveToken,
  GateView,
  RunEntryView,
  RunEvent,
  RunStreamError,
  RunSummary,
  RunView,
  RunWorkflow,
} from "../protocol/run-schemas.ts";
export type { SpanView, TraceView } from "../protocol/trace.ts";
export type { TurnRecord } from "../protocol/turn-records.ts";
export type { AgentUsage, SpendingView, UsageView } from "../protocol/usage-schemas.ts";
export type { OperationView, Snapshot } from "../protocol/views.ts";
export type { WaitingApproval, WaitingCall, WaitingGate } from "../protocol/waiting-approvals.ts";
export type {
  WorkflowDefinition,
  WorkflowNode,
  WorkflowTransition,
} from "../protocol/workflow-definition.ts";
export type { RunEntryType, RunError, RunStatus } from "../protocol/workflow-run.ts";
export type {
  BranchMergeStrategy,
  WorkspaceCommit,
  WorkspaceCommits,
  WorkspaceDiff,
  WorkspaceFile,
  WorkspaceFiles,
  WorkspaceMerge,
  WorkspaceView,
} from "../protocol/workspace.ts";
export type { Content, MediaPart, TextPart } from "../shared/content.ts";
export type { Jurisdiction, LocationHint } from "../shared/location.ts";
export { type AgentAtWork, type AgentTask, agentsAtWork } from "./agents-at-work.ts";
export type { DramatisClient } from "./api.ts";
export { type ClientTool, type ClientToolHost, runClientTools } from "./client-tools.ts";
export { type ConnectOptions, type ConversationConnection, connectConversation } from "./connection.ts";
export { DramatisClientError } from "./errors.ts";
export type { FollowOptions, FollowRunOptions } from "./follow.ts";
export { addHistory, type HistoryPage } from "./history.ts";
export { createClient } from "./http.ts";
export type { MemoriesClient, MemoriesRequest } from "./memories.ts";
export { newestVersions } from "./newest-versions.ts";
export type {
  ArtifactsRequest,
  ClientOptions,
  ConversationInput,
  ConversationsRequest,
  Fetch,
  MessageSearch,
  PageRequest,
  RequestOptions,
  RunInput,
  RunsRequest,
  StopRequest,
  TurnsListRequest,
  UploadOptions,
} from "./options.ts";
export { pendingCalls } from "./outbox.ts";
export type { ProjectsClient, WorkspaceOwner, WorkspacesClient } from "./projects.ts";
export type { WebSocketClass } from "./reconnect.ts";
export { applyFrame } from "./reducer.ts";
export type { Token } from "./requests.ts";
export type { ConversationActions, SendOptions } from "./session.ts";
export {
  type ConnectionStatus,
  callsAsking,
  initialState,
  isAnswering,
  isEnded,
  isStopped,
  isStopping,
  isTurnAnswering,
  type LiveConversation,
  lastError,
  type MessageOptions,
  type OperationState,
  type PendingApproval,
  type PendingCall,
  type PendingMessage,
  type PendingResult,
  type PendingStop,
  pendingApprovals,
  queuedTurns,
  type RetryNotice,
  runningOperations,
  type TranscriptMessage,
  type TurnItem,
  type TurnState,
  textOf,
  visibleMessages,
} from "./state.ts";
