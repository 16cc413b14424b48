/**
 * An application with agents that have memory. A header makes its sender a member; other senders are the local
 * administrator.
 */
import { dramatis } from "../../../src/dramatis.ts";
import { localAuthorize } from "../../../src/http/auth/authorize.ts";
import { defineLibrary, definePersona } from "../../../src/library/define/define.ts";

const guide = definePersona("guide", {
  name: "Guide",
  description: "Shows people the town.",
  identity: { systemPrompt: "You are a guide." },
  memory: { scope: "user" },
});

const clerk = definePersona("clerk", {
  name: "Clerk",
  identity: { systemPrompt: "You are a clerk." },
  memory: { scope: "agent" },
});

const friend = definePersona("friend", {
  name: "Friend",
  identity: { systemPrompt: "You are a friend." },
  memory: { scope: "user", extract: true, recall: { minRelevance: 0 } },
});

const app = dramatis({
  libraries: [defineLibrary("town", { personas: [guide, clerk, friend] })],
  agents: [
    { id: "guide", persona: "town/guide" },
    { id: "clerk", persona: "town/clerk" },
    { id: "friend", persona: "town/friend" },
  ],
  authorize: async (request, env) => {
    const subject = request.headers.get("x-member");
    return subject === null ? localAuthorize(request, env) : { subject, tenant: "local", roles: ["member"] };
  },
});

export const { Conversation, Agent, Coordinator, Trigger, EventLog, Workspace, Executor } = app;
export default app.handler;
