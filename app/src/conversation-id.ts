/** Which conversation the parts of a timeline belong to. */
import { createContext } from "react";

export const ConversationId = createContext("");
