/** Entry `dramatis/react`: conversations, requests for approval, runs and agents in React components. */

export type { LiveConversation, OperationState, TranscriptMessage, TurnItem, TurnState } from "../state.ts";
export { type TalkingAgent, type UseAgentsResult, useAgents } from "./use-agents.ts";
export { type UseApprovalsResult, useApprovals } from "./use-approvals.ts";
export {
  type UseConversationOptions,
  type UseConversationResult,
  useConversation,
} from "./use-conversation.ts";
export { type UseRunResult, useRun } from "./use-run.ts";
export type { SharedOptions } from "./use-shared.ts";
