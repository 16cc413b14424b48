/** Entry of the Worker that the tests on workerd run in: the application, and actors that exist only to be tested. */
import { DurableObject } from "cloudflare:workers";
import { workersAIAdapter } from "../../src/adapters/workers-ai.ts";
import { SessionAgent } from "../../src/agents/session-agent.ts";
import { dramatis } from "../../src/dramatis.ts";
import { localAuthorize } from "../../src/http/authorize.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { releaseLibrary } from "../support/releases/library.ts";
import { testLibrary } from "./library.ts";
import { passGate, reportRun } from "./provider.ts";

const app = dramatis({
  libraries: [testLibrary, releaseLibrary({ report: reportRun, pass: passGate })],
  // Tests name their principal; a request that names none is the local one's.
  authorize: async (request, env) => {
    const principal = request.headers.get("x-test-principal");
    // SAFETY: only tests reach this Worker.
    return principal === null ? localAuthorize(request, env) : (JSON.parse(principal) as Principal);
  },
  // Tests send as many requests as they like; those of limits have applications of their own.
  limits: { requests: false },
});

export const { Conversation, Agent, Executor } = app;

/** Conversations that accept three turns, and one more every ten seconds. */
export const { Conversation: LimitedConversation } = dramatis({
  libraries: [testLibrary],
  limits: { turns: { perMinute: 6, burst: 3 } },
});

/** A bare Durable Object whose storage the port tests use from inside. */
export class PortHost extends DurableObject {}

/** A `SessionAgent` as an application would write it. */
export class PlainSessionAgent extends SessionAgent {
  /** Answers with what a model would be sent, and keeps the turn. */
  async handleUserMessage(sessionId: string, userMessage: string): Promise<string> {
    const context = this.buildWorkingContext(sessionId, {
      systemInstructions: ["You are a helpful assistant."],
      limit: 10,
    });
    context.addMessage({ role: "user", content: userMessage });
    const input = workersAIAdapter.toModelMessages(context.systemInstructions, context.messages);
    const response = input.messages.map(({ role, content }) => `${role}: ${content}`).join("\n");
    context.addMessage({ role: "assistant", content: response });
    this.persistWorkingContext(sessionId, context);
    return response;
  }
}

export default app.handler;
