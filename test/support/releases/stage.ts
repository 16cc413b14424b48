/**
 * The stage that records and wakes conversations of a release in Node: the real runtime and mailbox on persistent
 * storage, with a frozen clock and repeatable ids. Models, tools and hooks follow the script in the user's message, as
 * with `scripted-provider.ts`. All gates open and close together.
 */

import { adapterFor } from "../../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../../src/adapters/gateway/gateway.ts";
import { Mailbox } from "../../../src/agents/base/mailbox/mailbox.ts";
import type { RuntimeContext } from "../../../src/agents/conversation/context.ts";
import { effectsOf } from "../../../src/agents/conversation/core/effects.ts";
import { Opening } from "../../../src/agents/conversation/inbound/opening.ts";
import { outgoing, takeEnvelopes } from "../../../src/agents/conversation/mailbox-handlers.ts";
import { ConversationQueries } from "../../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../../src/agents/conversation/runtime.ts";
import { DeployedCode } from "../../../src/library/registry/deployed-code.ts";
import { Registry } from "../../../src/library/registry/registry.ts";
import { resolveChain } from "../../../src/library/registry/resolve.ts";
import { titledMessage } from "../../../src/model/title-request.ts";
import { allowAll } from "../../../src/policy/gate.ts";
import type { KeyValue } from "../../../src/ports/key-value.ts";
import { NodeKeyValue } from "../../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../../src/ports/node/virtual-clock.ts";
import type { ActorDatabase } from "../../../src/ports/sql-database.ts";
import type { VersionChain } from "../../../src/protocol/definitions.ts";
import type { ActorAddress, Envelope } from "../../../src/protocol/envelope.ts";
import type { ToolState } from "../../../src/protocol/executor-api.ts";
import type { Frame } from "../../../src/protocol/frames.ts";
import type { Attempt } from "../../../src/protocol/mailbox-api.ts";
import { localExecutor } from "../../../src/testing/world/local-executor.ts";
import { noMail } from "../../../src/testing/world/no-mail.ts";
import type { AttemptScript, RunRecord, Script, StepScript } from "../provider-script.ts";
import { RECORDED_PERSONA, RECORDED_PROVIDER, releaseLibrary } from "./library.ts";

const TENANT = "test";

/** Maximum time to advance for sleepers: backoff ends, but a model's timeout does not. */
const LONGEST_SLEEP_MS = 5_000;

/** An actor that takes envelopes. */
export interface Receiver {
  receive(envelope: Envelope, attempt: Attempt): Promise<unknown>;
}

export interface Life {
  readonly runtime: ConversationRuntime;
  readonly mailbox: Mailbox;
  readonly queries: ConversationQueries;
  /** Published frames. */
  readonly frames: Frame[];
}

export class Stage {
  readonly database = new NodeSqlDatabase();
  readonly keyValue = new NodeKeyValue(this.database);
  readonly clock: VirtualClock;
  readonly ids;
  readonly code: DeployedCode;
  /** Reported runs of tools, oldest first. */
  readonly runs: RunRecord[] = [];
  /** The messages of each request to the model, oldest first. */
  readonly requests: { role: string; content: string }[][] = [];
  /** `true` while the gates are open. */
  isOpen = false;
  /** Requests to the model. */
  asked = 0;
  readonly #asked = new Map<string, number>();
  /** Returns another actor. An envelope to an absent actor has no answer. */
  route: (to: ActorAddress) => Receiver | undefined = () => undefined;
  /** The other conversations on the same clock. */
  readonly peers: Stage[] = [];
  /** The versions of the agent that opens this conversation by a call. They are given, because their hashes take real time. */
  calledChain: VersionChain | null = null;
  /** The id of the conversation before it exists. */
  id = "";
  #life: Life | null = null;
  /** The newest signature of a handle. It takes real time, so the clock waits for it. */
  #signing: Promise<unknown> = Promise.resolve();

  constructor(now?: number, seed = 7, clock = new VirtualClock(now)) {
    this.clock = clock;
    this.ids = seededIds(seed, this.clock);
    this.code = new DeployedCode([
      releaseLibrary({
        report: async (_key, run) => void this.runs.push(run),
        pass: () => this.pass(),
      }),
    ]);
  }

  /** Wakes the actor on this storage, or on a recording. */
  begin(database: ActorDatabase = this.database, keyValue: KeyValue = this.keyValue): Life {
    const frames: Frame[] = [];
    const state = (): ToolState => ({
      get: async (key) => runtime.toolState.get(key),
      put: async (key, value) => runtime.toolState.put(key, value),
      list: async (prefix) => runtime.toolState.list(prefix),
    });
    const { clock, ids } = this;
    const mailbox = new Mailbox({
      ...{ database, keyValue, clock },
      self: () => ({
        kind: "conversation",
        tenant: TENANT,
        id: runtime.exists ? runtime.state.record.id : this.id,
      }),
      deliver: (envelope, attempt) =>
        this.route(envelope.to)?.receive(structuredClone(envelope), attempt) ?? never(),
      checkStorage: () => undefined,
      arm: async () => undefined,
      whenArmed: async () => undefined,
      directory: () => ({ put: never, remove: never }),
    });
    const context: RuntimeContext = {
      ...{ database, keyValue, clock, ids },
      gateway: createModelGateway({
        secret: () => undefined,
        clock: this.clock,
        fetch: (_url, init) => this.#answer(String(init.body)),
      }),
      adapters: adapterFor,
      executor: localExecutor(this.code, clock, state, undefined, ({ operationId, attempt }, options) => {
        const given = runtime.results.defer({ operationId, attempt, ...options });
        this.#signing = given;
        return given;
      }),
      gate: allowAll,
      titles: () => "message",
      ...noMail,
      ...outgoing(mailbox),
      armWakeup: async () => undefined,
      publish: (published) => void frames.push(...published),
    };
    const runtime = new ConversationRuntime(context);
    const opening = new Opening({
      ...context,
      ...{ runtime, location: () => ({}), expel: () => undefined },
      agent: async () => ({
        persona: async () => {
          if (this.calledChain === null) throw new Error("This conversation has no agent.");
          return { ok: true, value: { chain: this.calledChain, projectIds: ["default"] } };
        },
      }),
    });
    takeEnvelopes(mailbox, { ...context, runtime, opening });
    this.#life = { runtime, mailbox, queries: new ConversationQueries(runtime.store), frames };
    return this.#life;
  }

  /** The newest life. */
  get life(): Life {
    return this.#life ?? this.begin();
  }

  chain(persona = RECORDED_PERSONA): Promise<VersionChain> {
    const profile = { provider: "openai", modelId: "scripted", baseUrl: RECORDED_PROVIDER } as const;
    return resolveChain(new Registry(this.code), persona, profile);
  }

  /** Runs until the condition holds. Throws if it stays false. */
  async until(condition: () => boolean): Promise<void> {
    for (let step = 0; !condition(); step++) {
      if (step > 2_000) throw new Error("It does not come about.");
      for (const stage of [this, ...this.peers]) await stage.#signing;
      await new Promise((resolve) => setImmediate(resolve));
      const { nextDue } = this.clock;
      if (step % 20 === 19 && nextDue !== undefined && nextDue <= this.clock.now() + LONGEST_SLEEP_MS) {
        await this.clock.runNext();
      } else if (step % 20 === 19) await this.#wakeUp();
    }
  }

  /** Wakes the actors when the first of them is due, unless they have effects: they wait for a deadline or for an attempt. */
  async #wakeUp(): Promise<void> {
    const runtimes = [this, ...this.peers].map(({ life }) => life.runtime).filter(({ exists }) => exists);
    const attempts = [this, ...this.peers].map(({ life }) => life.mailbox.wake());
    const isQueueing = runtimes.some(({ queue }) => !queue.isEmpty);
    if (!isQueueing && runtimes.some(({ state }) => effectsOf(state).length > 0)) return;
    const waiting = runtimes.filter(({ busy, queue }) => busy || !queue.isEmpty);
    const times = [...attempts, ...waiting.map(({ dueIn }) => dueIn)].filter((time) => time !== null);
    if (times.length > 0) await this.clock.advance(Math.min(...times));
    for (const runtime of waiting) runtime.reconcile();
  }

  /** Waits for ever unless the gates are open. */
  pass(): Promise<void> {
    return this.isOpen ? Promise.resolve() : never();
  }

  async #answer(body: string): Promise<Response> {
    this.asked += 1;
    const { messages } = JSON.parse(body);
    this.requests.push(messages);
    const start = messages.findLastIndex(({ role }: { role: string }) => role === "user");
    const script = scriptOf(messages[start].content);
    if (script === null) return this.#callBeside(messages);
    const reply = messages.slice(start).filter(({ role }: { role: string }) => role === "assistant").length;
    const chosen = script.replies[reply] ?? script.replies.at(-1) ?? [];
    const attempts = "attempts" in chosen ? chosen.attempts : [chosen];
    const attempt = this.#asked.get(`${script.key} ${reply}`) ?? 0;
    this.#asked.set(`${script.key} ${reply}`, attempt + 1);
    const answer = attempts[attempt] ?? attempts.at(-1) ?? [];
    if (!Array.isArray(answer)) return errorOf(answer);
    return this.#stream(reply, answer);
  }

  /** Answers an order to summarise by the newest script of the history, and a request for a title by the script of its message. */
  async #callBeside(messages: { content: string }[]): Promise<Response> {
    const script = messages
      .map(({ content }) => scriptOf(titledMessage(content) ?? content))
      .findLast((found) => found !== null);
    const missing: AttemptScript = { status: 400, message: "There is no script." };
    const answer = script?.title?.[0] ?? script?.summary ?? missing;
    return Array.isArray(answer) ? this.#stream(-1, answer) : errorOf(answer);
  }

  async #stream(reply: number, steps: readonly StepScript[]): Promise<Response> {
    if (steps.some((step) => "gate" in step)) await this.pass();
    return new Response(payloads(reply, steps), { headers: { "content-type": "text/event-stream" } });
  }
}

const never = () => new Promise<never>(() => undefined);

/** Returns the script that a message is; `null` for other messages. */
function scriptOf(content: string): Script | null {
  return content.startsWith('{"key":') ? JSON.parse(content) : null;
}

function errorOf({ status, message }: { status: number; message: string }): Response {
  return Response.json({ error: { message } }, { status });
}

/** Streams a reply as a provider does. */
function payloads(reply: number, steps: readonly StepScript[]): string {
  let calls = 0;
  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
  const chunk = (delta: object, finish: string | null = null) =>
    event({ id: `reply_${reply}`, choices: [{ index: 0, delta, finish_reason: finish }] });
  const events = steps.map((step) => {
    if ("text" in step) return chunk({ content: step.text.repeat(step.times ?? 1) });
    if ("usage" in step) return event({ choices: [], usage: step.usage });
    if ("raw" in step) return step.raw;
    if (!("call" in step)) return "";
    const { call: name, input, id = `call_${reply}_${calls}` } = step;
    const text = typeof input === "string" ? input : JSON.stringify(input);
    return chunk({ tool_calls: [{ index: calls++, id, function: { name, arguments: text } }] });
  });
  return `${events.join("")}${chunk({}, calls > 0 ? "tool_calls" : "stop")}data: [DONE]\n\n`;
}
