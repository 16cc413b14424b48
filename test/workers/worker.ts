/** Entry of the Worker that the tests on workerd run in: the application, and actors that exist only to be tested. */
import { DurableObject } from "cloudflare:workers";
import { demoLibrary } from "../../examples/demo/library.ts";
import { SessionAgent } from "../../src/agents/session-agent.ts";
import { dramatis } from "../../src/dramatis.ts";
import { localAuthorize } from "../../src/http/authorize.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { testLibrary } from "./library.ts";

const app = dramatis({
  libraries: [demoLibrary, testLibrary],
  agents: [{ id: "assistant", persona: "demo/assistant" }],
  // Tests name their principal; requests that do not are the local one's.
  authorize: async (request, env) => {
    const principal = request.headers.get("x-test-principal");
    // SAFETY: only tests reach this Worker.
    return principal === null ? localAuthorize(request, env) : (JSON.parse(principal) as Principal);
  },
});

export const { Conversation, Agent, Executor } = app;

/** A bare Durable Object whose storage the port tests use from inside. */
export class PortHost extends DurableObject {}

/** A `SessionAgent` as an application would write it. */
export class PlainSessionAgent extends SessionAgent {}

export default app.handler;
