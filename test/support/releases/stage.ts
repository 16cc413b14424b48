/**
 * The stage that records and wakes conversations of a release in Node: the real runtime on persistent storage, with a
 * frozen clock and repeatable ids. Models and tools follow the script in the user's message, as with
 * `scripted-provider.ts`. All gates open and close together.
 */

import { adapterFor } from "../../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../../src/adapters/gateway/gateway.ts";
import { effectsOf } from "../../../src/agents/conversation/core/effects.ts";
import { ConversationQueries } from "../../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../../src/agents/conversation/runtime.ts";
import { DeployedCode } from "../../../src/library/registry/deployed-code.ts";
import { allowAll } from "../../../src/policy/gate.ts";
import type { KeyValue } from "../../../src/ports/key-value.ts";
import { NodeKeyValue } from "../../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../../src/ports/node/virtual-clock.ts";
import type { ActorDatabase } from "../../../src/ports/sql-database.ts";
import type { ToolState } from "../../../src/protocol/executor-api.ts";
import type { Frame } from "../../../src/protocol/frames.ts";
import { localExecutor } from "../local-executor.ts";
import { noMail } from "../no-mail.ts";
import type { RunRecord, Script, StepScript } from "../provider-script.ts";
import { releaseLibrary } from "./library.ts";

/** Maximum time to advance for sleepers: backoff ends, but a model's timeout does not. */
const LONGEST_SLEEP_MS = 5_000;

export interface Life {
  readonly runtime: ConversationRuntime;
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
  /** The newest life. */
  #runtime: ConversationRuntime | null = null;

  constructor(now?: number, seed = 7) {
    this.clock = new VirtualClock(now);
    this.ids = seededIds(seed, this.clock);
    this.code = new DeployedCode([
      releaseLibrary({
        report: async (_key, run) => void this.runs.push(run),
        pass: () => this.#gate(),
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
    const runtime = new ConversationRuntime({
      database,
      keyValue,
      clock: this.clock,
      ids: this.ids,
      gateway: createModelGateway({
        secret: () => undefined,
        clock: this.clock,
        fetch: (_url, init) => this.#answer(String(init.body)),
      }),
      adapters: adapterFor,
      executor: localExecutor(this.code, this.clock, state),
      gate: allowAll,
      ...noMail,
      armWakeup: async () => undefined,
      publish: (published) => void frames.push(...published),
    });
    this.#runtime = runtime;
    return { runtime, queries: new ConversationQueries(runtime.store), frames };
  }

  /** Runs until the condition holds. Throws if it never does. */
  async until(condition: () => boolean): Promise<void> {
    for (let step = 0; !condition(); step++) {
      if (step > 2_000) throw new Error("It does not come about.");
      await new Promise((resolve) => setImmediate(resolve));
      const { nextDue } = this.clock;
      if (step % 20 === 19 && nextDue !== undefined && nextDue <= this.clock.now() + LONGEST_SLEEP_MS) {
        await this.clock.runNext();
      } else if (step % 20 === 19) await this.#wakeUp();
    }
  }

  /** Wakes an actor without effects when it is due: it waits for a deadline. */
  async #wakeUp(): Promise<void> {
    const runtime = this.#runtime;
    if (!runtime?.busy || effectsOf(runtime.state).length > 0) return;
    await this.clock.advance(runtime.dueIn ?? 0);
    runtime.reconcile();
  }

  #gate(): Promise<void> {
    return this.isOpen ? Promise.resolve() : new Promise(() => undefined);
  }

  async #answer(body: string): Promise<Response> {
    this.asked += 1;
    const { messages } = JSON.parse(body);
    this.requests.push(messages);
    const start = messages.findLastIndex(({ role }: { role: string }) => role === "user");
    const script: Script = JSON.parse(messages[start].content);
    const reply = messages.slice(start).filter(({ role }: { role: string }) => role === "assistant").length;
    const chosen = script.replies[reply] ?? script.replies.at(-1) ?? [];
    const attempts = "attempts" in chosen ? chosen.attempts : [chosen];
    const attempt = this.#asked.get(`${script.key} ${reply}`) ?? 0;
    this.#asked.set(`${script.key} ${reply}`, attempt + 1);
    const answer = attempts[attempt] ?? attempts.at(-1) ?? [];
    if (!Array.isArray(answer)) {
      return Response.json({ error: { message: answer.message } }, { status: answer.status });
    }
    if (answer.some((step) => "gate" in step)) await this.#gate();
    return new Response(payloads(reply, answer), { headers: { "content-type": "text/event-stream" } });
  }
}

/** Streams a reply as a provider does. */
function payloads(reply: number, steps: readonly StepScript[]): string {
  let calls = 0;
  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`;
  const chunk = (delta: object, finish: string | null = null) =>
    event({ id: `reply_${reply}`, choices: [{ index: 0, delta, finish_reason: finish }] });
  const events = steps.map((step) => {
    if ("text" in step) return chunk({ content: step.text });
    if ("usage" in step) return event({ choices: [], usage: step.usage });
    if ("raw" in step) return step.raw;
    if (!("call" in step)) return "";
    const { call: name, input, id = `call_${reply}_${calls}` } = step;
    const text = typeof input === "string" ? input : JSON.stringify(input);
    return chunk({ tool_calls: [{ index: calls++, id, function: { name, arguments: text } }] });
  });
  return `${events.join("")}${chunk({}, calls > 0 ? "tool_calls" : "stop")}data: [DONE]\n\n`;
}
