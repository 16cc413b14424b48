/** Renders the turns of the conversation of a called agent. */
import { createContext, type ReactNode } from "react";

export const NestedTurns = createContext<(conversationId: string, agentId: string) => ReactNode>(() => null);
