/** Answers requests for approval in the conversation that a component shows; `null` where its reader cannot. */
import { createContext } from "react";
import type { ConversationActions } from "../../src/client/index.ts";

export interface ApprovalActions {
  resolve: ConversationActions["resolveApproval"];
  /** The conversation is connected. */
  connected: boolean;
}

export const Approvals = createContext<ApprovalActions | null>(null);
