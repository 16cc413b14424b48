/** Id of the conversation that a timeline shows. */
import { createContext } from "react";

export const ConversationId = createContext("");
