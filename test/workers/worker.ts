/** Entry of the Worker that the tests on workerd run in: the application, and actors that exist only to be tested. */
import { DurableObject, env as environment } from "cloudflare:workers";
import { Agent as SdkAgent } from "agents";
import { Lifecycle } from "agents/lifecycle";
import { z } from "zod";
import { countsOf, withMeter } from "../../bench/turns/meter.ts";
import { workersAIAdapter } from "../../src/adapters/formats/workers-ai/adapter.ts";
import type { Interceptor } from "../../src/adapters/resilience/interceptors.ts";
import { otlpExporter } from "../../src/adapters/telemetry/otlp-exporter.ts";
import { NotNow } from "../../src/agents/base/mailbox/handlers.ts";
import { newOperationId } from "../../src/agents/base/mailbox/operation-id.ts";
import { SessionAgent } from "../../src/agents/base/session-agent.ts";
import { Wakeups } from "../../src/agents/base/timers/wakeups.ts";
import { mail, slack } from "../../src/channels.ts";
import { dramatis } from "../../src/dramatis.ts";
import { localAuthorize } from "../../src/http/auth/authorize.ts";
import { library as strategies } from "../../src/library/strategies/strategies.ts";
import type { SpanExporter } from "../../src/model/span.ts";
import { DEFAULT_RETENTION } from "../../src/policy/retention.ts";
import type { ArtifactType } from "../../src/protocol/artifacts.ts";
import type { Envelope } from "../../src/protocol/envelope.ts";
import type { LocationPolicy } from "../../src/protocol/location-policy.ts";
import type { Answer, Attempt } from "../../src/protocol/mailbox-api.ts";
import { CONVERSATION_FRAMES, conversationFrames } from "../../src/protocol/subscribers.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { releaseLibrary } from "../support/releases/library.ts";
import { flowLibrary } from "./flow-library.ts";
import { hookLibrary } from "./hook-library.ts";
import { learningLibrary } from "./learning-library.ts";
import { testLibrary } from "./library.ts";
import { memoryLibrary } from "./memory-library.ts";
import { passGate, reportRun } from "./provider.ts";
import { upkeepLibrary } from "./upkeep-library.ts";
import { vectors } from "./vectors.ts";

/** Deletes the large attachments of a conversation after their look-up, if a message requests it. */
const deletesAttachments: Interceptor = {
  async beforeSend({ body, media, context: { tenant, conversationId } }) {
    if (media === undefined || !JSON.stringify(body).includes("delete the large one")) return undefined;
    const { objects } = await environment.BUCKET.list({ prefix: `${tenant}/${conversationId}/attachments/` });
    await environment.BUCKET.delete(objects.filter(({ size }) => size > 1_000).map(({ key }) => key));
    return undefined;
  },
};

/** Locations for the tenants of `location.test.ts`; other tenants live anywhere. */
const LOCATIONS: Readonly<Record<string, LocationPolicy>> = {
  strict: { jurisdiction: "eu", locationHint: "weur", strict: true },
  apart: { strict: true },
};

/** Exports the traces of tests that ask for it by their trace's id, and never answers for some of them. */
function tracedExporter(): SpanExporter {
  const collector = otlpExporter({ url: `${environment.PROVIDER_CONTROL_URL}/traces` });
  return {
    export(spans, signal) {
      if (spans.some(({ traceId }) => traceId.startsWith("7e57dead"))) return new Promise(() => undefined);
      const traced = spans.filter(({ traceId }) => traceId.startsWith("7e57"));
      return traced.length === 0 ? undefined : collector.export(traced, signal);
    },
  };
}

/** The retention of projects, in days. */
export const RETENTION_DAYS: Record<string, number> = { brief: 7 };

/** The types of artifacts. The tests of artifacts use them with other stores, too. */
export const ARTIFACT_TYPES: readonly ArtifactType[] = [
  {
    id: "decision",
    pathPattern: "decisions/*.json",
    schema: {
      type: "object",
      properties: { title: { type: "string" }, status: { enum: ["open", "taken"] } },
      required: ["title", "status"],
    },
    index: { fields: ["status"], embed: ["title"] },
  },
  { id: "note", pathPattern: "notes/**", schema: { type: "string", minLength: 5 } },
];

const app = dramatis({
  artifactTypes: ARTIFACT_TYPES,
  libraries: [
    memoryLibrary,
    learningLibrary,
    ...[testLibrary, flowLibrary, hookLibrary, upkeepLibrary, strategies],
    releaseLibrary({ report: reportRun, pass: passGate }),
  ],
  // Tests name their principal. A request without a name has the local principal.
  authorize: async (request, env) => {
    const principal = request.headers.get("x-test-principal");
    // SAFETY: only tests reach this Worker.
    return principal === null ? localAuthorize(request, env) : (JSON.parse(principal) as Principal);
  },
  models: {
    allowedHosts: [new URL(environment.PROVIDER_URL).origin],
    allowedSecrets: ["SOME_API_KEY"],
    resilience: { interceptors: [deletesAttachments] },
  },
  tasks: {
    allowedHosts: [
      ...[
        environment.PROVIDER_CONTROL_URL,
        environment.MCP_URL,
        environment.GIT_URL,
        environment.A2A_URL,
      ].map((address) => new URL(address).host),
      "inside.example.org",
    ],
    resolver: `${environment.PROVIDER_CONTROL_URL}/dns`,
  },
  a2a: { webhookHosts: [new URL(environment.WEBHOOK_URL).host, "inside.example.org"] },
  telemetry: { exporter: tracedExporter },
  policy: [
    { id: "no-release", projects: ["policed"], paths: ["release/**"], then: "deny", reason: "Ask Ada." },
    { id: "no-example", projects: ["policed"], hosts: ["*.example.com"], then: "deny" },
    { id: "no-mcp-write", projects: ["policed"], tools: ["mcp__desk__write"], then: "deny" },
    { id: "no-march", projects: ["policed"], tools: ["march"], then: "deny" },
    { id: "ask-tainted", projects: ["policed"], effects: ["once"], tainted: true, then: "ask" },
  ],
  location: (tenant) => LOCATIONS[tenant] ?? {},
  retention: (conversation) => {
    if (conversation.projectId === "broken") throw new Error("The policy is broken.");
    return RETENTION_DAYS[conversation.projectId] ?? DEFAULT_RETENTION(conversation);
  },
  titles: ({ projectId }) => {
    if (projectId === "broken") throw new Error("The policy is broken.");
    return projectId === "titled" ? "message" : "none";
  },
  mcpServers: {
    desk: {
      url: `${environment.MCP_URL}/desk`,
      headers: { authorization: { secret: "MCP_TOKEN", prefix: "Bearer " } },
    },
    careful: {
      url: `${environment.MCP_URL}/careful`,
      effect: "once",
      allow: ["read", "write"],
      timeoutMs: 2_000,
    },
    session: { url: `${environment.MCP_URL}/session` },
    steady: { url: `${environment.MCP_URL}/steady` },
    raw: { url: `${environment.MCP_URL}/raw` },
    keyless: { url: `${environment.MCP_URL}/keyless`, headers: { "x-key": { secret: "MCP_ABSENT" } } },
  },
  mcp: {
    tools: [
      ...["test/double", "test/transfer", "test/charge", "absent/tool", "mcp-flows/twice"],
      ...["mcp-flows/double-again", "mcp-flows/imitation", "mcp-flows/search"],
    ],
  },
  channels: {
    slack: {
      agent: "channel-guide",
      adapter: () =>
        slack({
          botToken: "xoxb-test",
          signingSecret: "the signing secret of the tests",
          apiUrl: `${environment.SLACK_URL}/api`,
        }),
      user: ({ sender }) => (sender.endsWith(":U0STRANGER") ? null : { subject: sender, tenant: "test" }),
    },
    mail: {
      agent: "channel-guide",
      adapter: () =>
        mail({
          address: "help@dramatis.test",
          binding: {
            async send(message) {
              const [to] = [message.to].flat();
              const address = typeof to === "string" ? to : to?.email;
              const init = { method: "POST", body: JSON.stringify(message) };
              return (await fetch(`${environment.SLACK_URL}/mails/${address}`, init)).json();
            },
          },
        }),
      user: ({ sender }) => ({ subject: sender, tenant: "test" }),
    },
  },
  // Tests send any number of requests. Tests of limits have their own applications.
  limits: { requests: false, fanOutWidth: 250 },
});

export const { Conversation, Agent, Coordinator, Trigger, Channel, EventLog, Workspace, Executor } = app;

/** The executor of a Worker with an unusable setting. */
export class MisconfiguredExecutor extends app.Executor {
  constructor(context: ExecutionContext, env: Cloudflare.Env) {
    super(context, { ...env, DRAMATIS_MODEL: "opnai/gpt-4.1-mini" });
  }
}

/** Takes a mail, as Cloudflare Email Routing does. */
export const { email } = app.handler;

/** Conversations that accept three turns, and another every ten seconds. Secret requests are refused. */
export const { Conversation: LimitedConversation } = dramatis({
  libraries: [testLibrary],
  models: {
    resilience: {
      interceptors: [
        {
          beforeSend({ body }) {
            if (!JSON.stringify(body).includes("top secret")) return;
            throw new DramatisError("FORBIDDEN", "That stays here.");
          },
        },
      ],
    },
  },
  limits: { turns: { perMinute: 6, burst: 3 } },
});

/** Agents with a store of vectors and isolates without an index: searches ask the store. */
export const { Agent: VectorAgent } = dramatis({
  libraries: [testLibrary],
  memory: { vectors: () => vectors, indexBytes: 0 },
});

/** A conversation of a deployment without a directory. It counts its storage operations. */
export class MeteredConversation extends app.Conversation {
  constructor(ctx: DurableObjectState, { DB: _, ...env }: Cloudflare.Env) {
    super(withMeter(ctx), env as Cloudflare.Env);
  }

  async counts() {
    return countsOf(this.ctx);
  }
}

/** An agent of the SDK that counts its storage operations. */
export class MeteredAgent extends SdkAgent {
  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(withMeter(ctx), env);
  }

  async counts() {
    return countsOf(this.ctx);
  }
}

/** A bare Durable Object with storage for the port tests. */
export class PortHost extends DurableObject {}

/** Only wake-ups. The test decides what the actor does in a wake-up, and when the next wake-up is. */
export class Sleeper extends DurableObject {
  readonly woken: string[] = [];
  again: number | null = null;
  /** The handlers throw. */
  isBroken = false;
  /** The work of the actor at its start. */
  starts: () => Promise<void> = async () => undefined;
  /** Called at each wake-up. */
  onWake = (_name: string): void => undefined;
  readonly #wakeups = new Wakeups("wakeups");
  readonly lifecycle = Lifecycle.install(this).use(this.#wakeups);
  readonly first = this.#wakeups.add("first", () => this.#wake("first"));
  readonly second = this.#wakeups.add("second", () => this.#wake("second"));

  onStart(): Promise<void> {
    return this.starts();
  }

  #wake(name: string): number | null {
    this.woken.push(name);
    this.onWake(name);
    if (this.isBroken) throw new Error("The handler is broken.");
    return this.again;
  }
}

/** A `SessionAgent` as an application would write it. */
export class PlainSessionAgent extends SessionAgent {
  /** Answers with the model's input, and keeps the turn. */
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

/** The reaction of a `Courier` to an envelope. `down` applies to all attempts, and the other traps to one attempt. */
export type Trap = "none" | "hang" | "throw" | "crash before" | "crash after" | "down";

/** An actor that sends work to others of its class, and records its work and its messages. */
export class Courier extends SessionAgent {
  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(ctx, env);
    const { kv } = ctx.storage;
    this.mailbox.receives("work", z.strictObject({ note: z.string() }), ({ note }, delivery) => {
      this.#add("acts", note);
      delivery.afterCommit(() => this.#add("effects", note));
      const mood = kv.get("mood");
      if (mood === "refuse") throw new DramatisError("CONFLICT", "Not with me.");
      if (mood === "busy") throw new NotNow("Too much to do.", 20_000);
      return { done: note };
    });
    this.mailbox.receives(CONVERSATION_FRAMES, conversationFrames, (body, { envelope }) => {
      this.#add("frames", { conversationId: envelope.from.id, ...body });
      if (kv.get("mood") === "refuse") throw new DramatisError("CONFLICT", "Not with me.");
      return null;
    });
    this.mailbox.outcomes("work", ({ envelope, outcome, late }) => {
      this.#add("told", { operationId: envelope.operationId, ...outcome, late });
    });
  }

  /** Sends in a transaction with a separate fact. `rollBack` reverts it. */
  async dispatch(to: string, operationId: string, note: string, rollBack = false): Promise<void> {
    const address = { kind: "courier", tenant: this.name.split(":")[0] ?? "", id: to };
    const { armed } = this.ctx.storage.transactionSync(() => {
      this.#add("dispatched", note);
      const sent = this.mailbox.send({ operationId, to: address, type: "work", body: { note } });
      if (rollBack) throw new Error("rolled back");
      return { armed: sent };
    });
    await armed;
  }

  async record(list: "acts" | "effects" | "told" | "dispatched" | "attempts" | "frames"): Promise<unknown[]> {
    return this.ctx.storage.kv.get<unknown[]>(list) ?? [];
  }

  async set(what: "trap" | "mood", value: string): Promise<void> {
    this.ctx.storage.kv.put(what, value);
  }

  override async receive(envelope: Envelope, attempt: Attempt): Promise<Answer> {
    const { kv } = this.ctx.storage;
    this.#add("attempts", attempt.number);
    const trap = kv.get<Trap>("trap") ?? "none";
    if (trap === "down") throw new Error("unreachable");
    kv.put("trap", "none");
    await this.ctx.storage.sync();
    if (trap === "hang") return new Promise(() => undefined);
    if (trap === "throw") throw new Error("once");
    if (trap === "crash before") this.ctx.abort("crash before");
    const answer = await super.receive(envelope, attempt);
    if (trap !== "crash after") return answer;
    await this.ctx.storage.sync();
    return this.ctx.abort("crash after") as never;
  }

  #add(list: string, item: unknown): void {
    const { kv } = this.ctx.storage;
    kv.put(list, [...(kv.get<unknown[]>(list) ?? []), item]);
  }
}

/** The example of docs/delivery.md, unchanged. */
export class Orders extends SessionAgent {
  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(ctx, env);
    this.mailbox.outcomes("order.placed", ({ outcome, late }) => {
      ctx.storage.kv.put("outcome", { ...outcome, late });
    });
  }

  async place(order: string): Promise<void> {
    const { armed } = this.ctx.storage.transactionSync(() => {
      this.ctx.storage.kv.put("order", order);
      return {
        armed: this.mailbox.send({
          operationId: newOperationId(),
          to: { kind: "stock", tenant: "acme", id: "main" },
          type: "order.placed",
          body: { order },
        }),
      };
    });
    await armed;
  }
}

const placed = z.strictObject({ order: z.string() });

/** As `Orders`. */
export class Stock extends SessionAgent {
  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(ctx, env);
    this.mailbox.receives("order.placed", placed, ({ order }, { afterCommit }) => {
      if (order === "") throw new DramatisError("CONFLICT", "There is nothing in this order.");
      ctx.storage.kv.put(`order:${order}`, true);
      afterCommit(() => console.log("taken:", order));
      return { taken: order };
    });
  }
}

export default app.handler;
