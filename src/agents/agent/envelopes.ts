/** The envelopes that an agent takes. */
import { z } from "zod";
import type { Envelope } from "../../protocol/envelope.ts";
import { DramatisError } from "../../shared/errors.ts";
import { isConversationId } from "../../shared/identifiers.ts";

/** From a conversation that was created with this agent: it joins the agent's index. */
export const CONVERSATION_OPENED = "conversation.opened";

export const conversationOpenedSchema = z.strictObject({});

/** The conversation that says it has opened: the sender itself. */
export function openedConversation({ from }: Envelope): string {
  if (from.kind === "conversation" && isConversationId(from.id)) return from.id;
  throw new DramatisError("INVALID_INPUT", "Only a conversation can say that it has opened.");
}
