/** A conversation in Node with a model that answers on the test's command, through the real adapter. */
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import type { RequestMetrics } from "../../src/adapters/resilience/telemetry.ts";
import { NEW_LEASE } from "../../src/agents/conversation/core/lease.ts";
import type { BudgetLeased, UserMessage } from "../../src/agents/conversation/core/signals.ts";
import type { ConversationIdentity } from "../../src/agents/conversation/core/state.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { type Beginning, ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import type { Library } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import type { ModelGateway } from "../../src/model/gateway.ts";
import type { ModelProfile } from "../../src/model/profile.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import { allowAll } from "../../src/policy/gate.ts";
import type { TitlePolicy } from "../../src/policy/titles.ts";
import type { Clock } from "../../src/ports/clock.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import type { Budget } from "../../src/protocol/budget.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import type { Persona, VersionChain } from "../../src/protocol/definitions.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { MemoryApi, MemoryWriter } from "../../src/protocol/memory.ts";
import type { MemoryInput } from "../../src/protocol/memory-requests.ts";
import type { Memory } from "../../src/protocol/memory-schemas.ts";
import type { Handoff, Participant } from "../../src/protocol/participants.ts";
import type { Content } from "../../src/shared/content.ts";
import { defined } from "../../src/shared/defined.ts";
import { asResult, DramatisError } from "../../src/shared/errors.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import type { RateLimit } from "../../src/shared/token-bucket.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { withNotes } from "./notes.ts";
import { messageOfAda, PIN, recordOf } from "./records.ts";

const STOP = { caller: { type: "user", userId: "ada" } } as const;

const STEERED: ModelProfile = { provider: "openai", modelId: "steered", baseUrl: "http://model/v1" };

/** A request that the model has not answered. */
export interface OpenRequest {
  body: JsonObject;
  messages: { role: string; content: unknown; tool_calls?: unknown[] }[];
  isAborted(): boolean;
  /** Streams a piece of text. */
  say(text: string): void;
  /** Streams the provider's count so far. */
  count(): void;
  end(): void;
  /** Says a text and ends the reply, which the provider counts. */
  answer(text: string): void;
  /** Ends the call with an error; unless it is retriable, no other attempt cures it. */
  fail(message: string, retriable?: boolean): void;
  /** Ends the reply with tool calls. */
  call(...calls: [name: string, input: JsonObject][]): void;
}

export class SteeredConversation {
  readonly frames: Frame[] = [];
  /** The metrics of calls that are over. */
  readonly metrics: RequestMetrics[] = [];
  /** Number of commits that changed the usage without a turn's end. */
  usageChanges = 0;
  readonly runtime: ConversationRuntime;
  readonly queries: ConversationQueries;
  /** The agents that can be brought in, by id, with their instructions; asked for by name. */
  readonly crew: Map<string, string | Error>;
  /** The id of each requested agent, in order. */
  readonly asked: string[] = [];
  /** The memories that were written, in order. */
  readonly written: { content: string; tainted: boolean }[] = [];
  /** The memories that every search finds. */
  memories: Memory[] = [];
  #held: (() => Promise<never>) | undefined;
  readonly #requests: OpenRequest[] = [];
  readonly #waiting: ((request: OpenRequest) => void)[] = [];
  readonly #onFrame = new Set<() => void>();

  private constructor(
    private readonly code: DeployedCode,
    readonly database = new NodeSqlDatabase(),
    private readonly clock: Clock = systemClock,
    turnLimit?: RateLimit,
    crew = new Map<string, string | Error>(),
    private readonly titles: TitlePolicy = () => "none",
  ) {
    this.crew = crew;
    const gateway = this.#gateway();
    const models = {
      gateway,
      adapters: adapterFor,
      embeddings: { embed: async () => Promise.reject(new Error("This model makes no vectors.")) },
      defaultProfile: STEERED,
    };
    this.runtime = new ConversationRuntime({
      ...noMail,
      database,
      keyValue: new NodeKeyValue(database),
      clock,
      ids: systemIds,
      gateway,
      adapters: adapterFor,
      executor: localExecutor(
        code,
        clock,
        undefined,
        ({ operationId, attempt }, ended) =>
          this.runtime.results.takeResult({ operationId, attempt, ...ended }),
        undefined,
        { models: () => models },
        {
          agent: async () => this.#memory,
          pastTurns: async (_context, request) =>
            asResult(() => this.queries.pastTurns(this.runtime.state, request)),
        },
      ),
      agent: async () => this.#memory,
      gate: allowAll,
      titles,
      ...defined({ turnLimit }),
      invite: async (_record, id) => {
        this.asked.push(id);
        await this.#held?.();
        const found = this.crew.get(id) ?? new DramatisError("NOT_FOUND", `There is no agent "${id}".`);
        if (found instanceof Error) throw found;
        return { agent: this.#agentOf(id, found, {}) };
      },
      armWakeup: async () => undefined,
      metrics: (metrics) => {
        this.metrics.push(metrics);
      },
      onUsage: () => {
        this.usageChanges += 1;
      },
      publish: (frames) => {
        this.frames.push(...frames);
        for (const check of this.#onFrame) check();
      },
    });
    this.queries = new ConversationQueries(this.runtime.store);
  }

  /** Creates a conversation with the tools of a library. */
  static async create(
    library: Library,
    beginning: Beginning = {},
    memory: Persona["memory"] = {},
    {
      profile: settings = {},
      budget,
      clock,
      turnLimit,
      leased,
      titler,
      titles,
      record = {},
    }: {
      profile?: Partial<ModelProfile>;
      budget?: Budget;
      clock?: Clock;
      turnLimit?: RateLimit;
      leased?: true;
      /** The model that writes titles. */
      titler?: Partial<ModelProfile>;
      titles?: TitlePolicy;
      /** Other members of its record. */
      record?: Partial<ConversationIdentity>;
    } = {},
  ): Promise<SteeredConversation> {
    const code = new DeployedCode([library]);
    const conversation = new SteeredConversation(code, undefined, clock, turnLimit, undefined, titles);
    const persona = {
      identity: { systemPrompt: "Test." },
      memory,
      ...defined({ budget }),
      tools: { toolIds: library.tools.map(({ id }) => `${library.id}/${id}`) },
    };
    const profile = { ...STEERED, ...settings };
    const resolved = await resolveChain(new Registry(conversation.code), persona, profile);
    const definition = { ...STEERED, modelId: "titler", ...titler };
    const titleProfile = { ...PIN, id: "titler", definition };
    const chain: VersionChain = { ...resolved, ...(titler && { titleProfile }) };
    const agents = [{ id: "tester", ...defined({ leased }), chain }] as const;
    await conversation.runtime.create(recordOf(chain, { agents, ...record }), beginning);
    return conversation;
  }

  /** Returns the conversation after a crash. The life before must get no more answers. */
  async restarted(clock = this.clock): Promise<SteeredConversation> {
    const { code, database, crew, titles } = this;
    const next = new SteeredConversation(code, database, clock, undefined, crew, titles);
    await next.runtime.wake();
    return next;
  }

  /** Lets no agent answer that is asked to join. Resolves when one is asked. */
  holdCrew(): Promise<void> {
    return new Promise((resolve) => {
      this.#held = () => {
        resolve();
        return new Promise<never>(() => undefined);
      };
    });
  }

  /** Sends a message, of ada unless `as` names another user. Returns the id of its turn. */
  async say(content: Content, { as = "ada", ...more }: Partial<UserMessage["data"]> & { as?: string } = {}) {
    const { data, type } = messageOfAda(content);
    const caller = { type: "user", userId: as } as const;
    return (await this.runtime.accept({ type, caller, data: { ...data, ...more } })).turnId;
  }

  /** Returns the next request to the model that the test has not taken. */
  request(): Promise<OpenRequest> {
    const next = this.#requests.shift();
    return next === undefined ? new Promise((resolve) => this.#waiting.push(resolve)) : Promise.resolve(next);
  }

  /** Number of requests that the test has not taken. */
  get untaken(): number {
    return this.#requests.length;
  }

  turn(id: string): TurnView {
    return this.queries.turn(this.runtime.state, id);
  }

  stop(id: string): Promise<void> {
    return this.runtime.changes.cancelTurn(this.queries.requireTurn(this.runtime.state, id), STOP);
  }

  /** Adds a participant; an agent with these instructions, which may have a budget. */
  join(
    participant: Participant,
    systemPrompt = `You are ${participant.id}.`,
    { leased, budget, handoff }: { leased?: true; budget?: Budget; handoff?: Handoff } = {},
  ): Promise<void> {
    const agent = this.#agentOf(participant.id, systemPrompt, { leased, budget });
    return this.runtime.changes.changeParticipants({
      type: "conversation.participant.add",
      ...STOP,
      participant,
      ...(participant.type === "agent" ? { agent } : {}),
      ...defined({ handoff }),
    });
  }

  /** The memory of every agent. */
  get #memory(): MemoryApi {
    return {
      writeMemories: async ({ tainted = false }: MemoryWriter, [input]: MemoryInput[]) => {
        const content = input?.content ?? "";
        this.written.push({ content, tainted });
        const memory = { id: `mem_${this.written.length}`, version: 1, type: "fact", content };
        return { ok: true, value: [memory] };
      },
      searchMemories: async () => ({
        ok: true,
        value: { matches: this.memories.map((memory) => ({ memory })) },
      }),
      offerMemories: async () => ({ ok: true, value: [] }),
      // SAFETY: conversations and their tools call no other methods in these tests.
    } as unknown as MemoryApi;
  }

  #agentOf(
    id: string,
    systemPrompt: string,
    { leased, budget }: { leased?: true | undefined; budget?: Budget | undefined },
  ) {
    const { chain } = this.runtime.state.record.agents[0];
    const persona = { ...chain.persona, definition: { identity: { systemPrompt }, ...defined({ budget }) } };
    return { id, chain: { ...chain, persona }, ...defined({ leased }) };
  }

  leave(participant: Participant): Promise<void> {
    return this.runtime.changes.changeParticipants({
      type: "conversation.participant.remove",
      ...STOP,
      participant,
    });
  }

  end(reason?: string): Promise<void> {
    return this.runtime.changes.end({ ...STOP, ...defined({ reason }) });
  }

  /** Gives the conversation the agent's answer to the newest request for its lease. */
  answerLease(answer: BudgetLeased["answer"]): Promise<void> {
    const { seq } = this.runtime.state.leases?.tester ?? NEW_LEASE;
    const unit = this.runtime.begin();
    unit.stage([{ type: "conversation.budget.leased", agentId: "tester", seq, answer }]);
    return unit.release();
  }

  stopAll(): Promise<void> {
    return this.runtime.changes.cancel(STOP);
  }

  /** Resolves when a frame satisfies `isDone`. */
  async until(isDone: (frame: Frame) => boolean): Promise<void> {
    while (!this.frames.some(isDone)) {
      await new Promise<void>((resolve) => {
        const check = () => {
          this.#onFrame.delete(check);
          resolve();
        };
        this.#onFrame.add(check);
      });
    }
  }

  #gateway(): ModelGateway {
    const take = (request: OpenRequest) => {
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#requests.push(request);
      else waiting(request);
    };
    return {
      async *stream({ body }, signal): AsyncGenerator<ModelDelta> {
        const deltas: ModelDelta[] = [];
        let wake = () => {};
        let isOver = false;
        const push = (...more: ModelDelta[]) => {
          deltas.push(...more);
          wake();
        };
        const finish = (reason: "stop" | "tool_calls") => {
          isOver = true;
          push({ type: "finish", reason });
        };
        signal.addEventListener("abort", () => wake(), { once: true });
        take({
          body,
          // SAFETY: the adapter of the format wrote the body.
          messages: withNotes(body.messages as unknown as OpenRequest["messages"]),
          isAborted: () => signal.aborted,
          say: (text) => push({ type: "text", text }),
          count: () => push({ type: "usage", usage: { inputTokens: 100, outputTokens: 10 } }),
          end: () => finish("stop"),
          answer: (text) => {
            push({ type: "text", text }, { type: "usage", usage: { inputTokens: 100, outputTokens: 10 } });
            finish("stop");
          },
          fail: (message, retriable = false) => {
            isOver = true;
            push({
              type: "error",
              error: { category: "validation", message, retriable, provider: "openai" },
            });
          },
          call: (...calls) => {
            for (const [index, [name, input]] of calls.entries()) {
              push({
                type: "tool-call",
                index,
                id: `call_${index}`,
                name,
                arguments: JSON.stringify(input),
              });
            }
            finish("tool_calls");
          },
        });
        for (;;) {
          if (signal.aborted) return;
          const delta = deltas.shift();
          if (delta !== undefined) yield delta;
          else if (isOver) return;
          else await new Promise<void>((resolve) => (wake = resolve));
        }
      },
    };
  }
}
