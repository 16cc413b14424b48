/** Answers requests for approval in the conversation that a component shows; `null` where its reader cannot. */
import { createContext } from "react";
import type { ConversationActions } from "../../src/client/index.ts";

export const ResolveApproval = createContext<ConversationActions["resolveApproval"] | null>(null);
