/** Answers requests for approval in the conversation that a component shows; `null` if its reader cannot answer them. */
import { createContext } from "react";
import { type ConversationActions, DramatisClientError } from "../../src/client/index.ts";

export interface ApprovalActions {
  resolve: (...args: Parameters<ConversationActions["resolveApproval"]>) => Promise<unknown>;
  /** The conversation is connected. */
  connected: boolean;
}

export const Approvals = createContext<ApprovalActions | null>(null);

/** The note beside the buttons of a request that the user may not answer. */
export const NOT_YOU = "You cannot answer.";

/** Reports whether an error says that the user may not answer a request. */
export function isExcluded(error: unknown): boolean {
  return error instanceof DramatisClientError && error.code === "PERMISSION_DENIED";
}
