/** `dramatis/client`: everything a program needs to talk to conversations, without a framework. */
export type { ToolSpec } from "../model/context.ts";
export type { Frame, FrameType } from "../protocol/frames.ts";
export type { ClientToolError, ToolChoice, ToolOutcome } from "../protocol/requests.ts";
export type {
  AgentUsage,
  AttachmentView,
  ConversationSummary,
  ConversationView,
  MessageView,
  OperationView,
  Snapshot,
  TurnIssues,
  TurnSummary,
  UsageView,
  WireError,
} from "../protocol/views.ts";
export type { Content, MediaPart, TextPart } from "../shared/content.ts";
export type { Token } from "./admission.ts";
export { type ConnectOptions, type ConversationConnection, connectConversation } from "./connection.ts";
export { DramatisClientError } from "./errors.ts";
export { addHistory, type HistoryPage } from "./history.ts";
export {
  type ClientOptions,
  type ConversationInput,
  createClient,
  type DramatisClient,
  type Fetch,
  type PageRequest,
  type RequestOptions,
  type UploadOptions,
} from "./http.ts";
export { pendingCalls } from "./results.ts";
export type { WebSocketClass } from "./resume.ts";
export type { SendOptions } from "./session.ts";
export {
  type ConnectionStatus,
  initialState,
  isAnswering,
  type LiveConversation,
  type OperationState,
  type PendingMessage,
  type PendingResult,
  type RetryNotice,
  type TranscriptMessage,
  type TurnItem,
  type TurnState,
  textOf,
  visibleMessages,
} from "./state.ts";
export { applyFrame } from "./store.ts";
