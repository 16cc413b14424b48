/** Renders the turns of the conversation in which an agent that was called works. */
import { createContext, type ReactNode } from "react";

export const NestedTurns = createContext<(conversationId: string, agentId: string) => ReactNode>(() => null);
