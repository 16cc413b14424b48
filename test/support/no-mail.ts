/** Ports of a conversation that sends no envelopes and that nobody lists. */
import type { ConversationPorts } from "../../src/agents/conversation/runtime.ts";

export const noMail: Pick<ConversationPorts, "send" | "announce"> = {
  send: async () => undefined,
  announce: () => [],
};
