/** Records of conversations for tests: one user, and by default one agent. */
import type { UserMessage } from "../../src/agents/conversation/core/signals.ts";
import type { ConversationIdentity } from "../../src/agents/conversation/core/state.ts";
import type { VersionChain } from "../../src/protocol/definitions.ts";
import type { Content } from "../../src/shared/content.ts";

/** A version for definitions in tests that do not depend on the version. */
export const PIN = { version: 1, hash: "h" };

/** A chain without tools. */
export const PLAIN_CHAIN: VersionChain = {
  persona: { ...PIN, id: "inline", definition: { identity: { systemPrompt: "Test." } } },
  tools: [],
  modelProfile: { ...PIN, id: "default", definition: { provider: "offline", modelId: "offline-1" } },
  fallbacks: [],
};

/** Returns the record of a conversation of the user `ada` with the agent `tester`. */
export function recordOf(
  chain: VersionChain = PLAIN_CHAIN,
  members: Partial<ConversationIdentity> = {},
): ConversationIdentity {
  return {
    id: "conv_test",
    tenant: "test",
    title: null,
    projectId: "default",
    participants: [{ type: "user", id: "ada" }],
    agents: [{ id: "tester", chain }],
    createdAt: 1,
    ...members,
  };
}

/** Returns a message of the user `ada`. */
export function messageOfAda(content: Content): UserMessage {
  return { type: "conversation.user.message", caller: { type: "user", userId: "ada" }, data: { content } };
}
