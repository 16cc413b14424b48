/** Entry of the Worker that the tests on workerd run in: the actors, and some that exist only to be tested. */
import { DurableObject } from "cloudflare:workers";
import { SessionAgent } from "../../src/agents/session-agent.ts";

/** A bare Durable Object whose storage the port tests use from inside. */
export class PortHost extends DurableObject {}

/** A `SessionAgent` as an application would write it. */
export class PlainSessionAgent extends SessionAgent {}

export default {
  fetch: () => new Response("Not found", { status: 404 }),
} satisfies ExportedHandler<Cloudflare.Env>;
