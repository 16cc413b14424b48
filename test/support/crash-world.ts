/**
 * A conversation in Node that can be killed at any port crossing and wakes on the same database. Its user retries until
 * acknowledged, and its client reconnects with its last number.
 *
 * Adapters, gateway, executor and client reducer are real. Only the provider's HTTP responses are scripted.
 */

import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { deliverResult } from "../../src/agents/executor/deliver.ts";
import { pendingCalls } from "../../src/client/outbox.ts";
import { applyFrame } from "../../src/client/reducer.ts";
import { initialState, type LiveConversation } from "../../src/client/state.ts";
import type { Library } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { isCompaction } from "../../src/memory/session/session-event.ts";
import type { OutputSpec, ToolSpec } from "../../src/model/context.ts";
import type { ModelGateway } from "../../src/model/gateway.ts";
import type { UsageTotals } from "../../src/model/usage.ts";
import { allowAll, type Gate } from "../../src/policy/gate.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { seededIds } from "../../src/ports/node/seeded-ids.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import type { Persona, VersionChain } from "../../src/protocol/definitions.ts";
import type { TaskResultApi } from "../../src/protocol/executor-api.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { asResult } from "../../src/shared/errors.ts";
import type { Json } from "../../src/shared/json.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { MortalClock } from "../simulation/clocks.ts";
import { type Provider, scriptedFetch } from "./chat-replies.ts";
import { type Crossings, crossExecutor, crossGateway, crossKeyValue, crossSql, Fault } from "./crossings.ts";
import { recordOf } from "./records.ts";
import { hasSideCall, isExtracting } from "./running-work.ts";

export interface WorldOptions {
  library: Library;
  persona: Persona;
  provider: Provider;
  gate?: Gate;
  /** Changes the pinned definitions, for a defect that no definition can cause. */
  spoil?: (chain: VersionChain) => VersionChain;
  /** Replaces the gateway to `provider`. */
  gateway?: ModelGateway;
  /** Schema of structured output. */
  output?: OutputSpec;
  /** Messages of the user. Each is sent after the previous turn has ended. */
  messages: string[];
  /** Tools of each message, and the function that runs a displayed call for the client. */
  client?: { tools: ToolSpec[]; run: (name: string, input: unknown) => Json };
}

/** One life of the actor. */
interface Begun {
  runtime: ConversationRuntime;
  queries: ConversationQueries;
  /** Takes results of lost callers. */
  door: TaskResultApi;
}

/** The parts that outlive the actor. */
export interface World {
  readonly turns: TurnView[];
  /** State of the client at the end, after all reconnections. */
  readonly client: LiveConversation;
  readonly lives: number;
  /** The compactions in the session. */
  readonly compactions: number;
  readonly usage: UsageTotals;
  readonly title: string | null;
}

const USER = { type: "user", userId: "ada" } as const;
/** Maximum number of steps. A run that needs more is stuck. */
const MAX_STEPS = 5_000;

/** Runs the whole conversation with the crashes of `crossings`. */
export async function runWorld(options: WorldOptions, crossings: Crossings): Promise<World> {
  const database = new NodeSqlDatabase();
  const keyValue = new NodeKeyValue(database);
  const clock = new VirtualClock();
  const ids = seededIds(7, clock);
  const code = new DeployedCode([options.library]);
  const executor = localExecutor(code, clock, undefined, ({ operationId, attempt }, result) =>
    deliverResult(clock, async () => life.door, { operationId, attempt, ...result }),
  );
  const profile = { provider: "openai", modelId: "scripted", baseUrl: "http://provider/v1" } as const;
  const resolved = await resolveChain(new Registry(code), options.persona, profile);
  const chain = options.spoil?.(resolved) ?? resolved;
  const gateway =
    options.gateway ??
    createModelGateway({ secret: () => undefined, clock, fetch: scriptedFetch(options.provider) });

  let client = initialState;
  let connected = true;
  let lives = 0;
  let lifeClock = new MortalClock(clock);

  function begin(): Begun {
    lives += 1;
    lifeClock.die();
    lifeClock = new MortalClock(clock);
    const life = crossings.beginLife();
    const runtime = new ConversationRuntime({
      database: crossSql(database, life),
      keyValue: crossKeyValue(keyValue, life),
      clock: lifeClock,
      ids,
      gateway: crossGateway(gateway, life),
      adapters: adapterFor,
      executor: crossExecutor(executor, life),
      gate: options.gate ?? allowAll,
      ...noMail,
      titles: () => (chain.titleProfile === undefined ? "none" : "message"),
      armWakeup: () => life.cross("window.open", async () => undefined),
      publish: (frames: Frame[]) => {
        if (!life.alive) return;
        life.cross("publish", () => {
          if (connected) for (const frame of frames) client = applyFrame(client, frame);
        });
      },
    });
    const door: TaskResultApi = {
      handleTaskResult: (result) =>
        asResult(async () => {
          await life.cross("tool.result", () => runtime.results.takeResult(result));
          return null;
        }),
    };
    return { runtime, queries: new ConversationQueries(runtime.store), door };
  }

  /** Starts a new life after a crash: the actor wakes, and the client reconnects with its last number. */
  async function rebirth() {
    for (;;) {
      connected = false;
      const life = begin();
      try {
        await life.runtime.wake();
        if (life.runtime.exists) reconnect(life);
        connected = true;
        return life;
      } catch (error) {
        if (!crossings.isCrash(error)) throw error;
      }
    }
  }

  function reconnect({ runtime, queries }: Pick<Begun, "runtime" | "queries">): void {
    for (let after = client.seq ?? 0, done = false; !done; ) {
      const slice = queries.replay(runtime.state, after);
      for (const frame of slice.frames) client = applyFrame(client, frame);
      after = slice.upTo;
      done = slice.done;
    }
    runtime.deltas.flush();
    for (const { messageId } of runtime.deltas.lengths()) {
      for (let offset = 0, piece = runtime.deltas.piece(messageId, 0); piece; ) {
        client = applyFrame(client, piece);
        offset += piece.data.text.length;
        piece = runtime.deltas.piece(messageId, offset);
      }
    }
  }

  /** Gives the client's results for displayed calls, as often as they are displayed. */
  async function answer(): Promise<void> {
    const results = pendingCalls(client).map(({ operationId, name, input }) => ({
      operationId,
      result: options.client?.run(name, input) ?? null,
    }));
    if (results.length === 0) return;
    try {
      await life.runtime.results.submit(results);
    } catch (error) {
      if (!(error instanceof Fault || crossings.isCrash(error))) throw error;
    }
  }

  let life = begin();
  await life.runtime.create(recordOf(chain, { createdAt: clock.now() }));
  crossings.arm();

  for (const [index, content] of options.messages.entries()) {
    for (let acknowledged = false; !acknowledged; ) {
      try {
        const signal = {
          type: "conversation.user.message",
          id: `key-${index}`,
          caller: USER,
          data: {
            content,
            ...(options.output === undefined ? {} : { output: options.output }),
            ...(options.client === undefined ? {} : { tools: options.client.tools }),
          },
        } as const;
        await life.runtime.accept(signal);
        acknowledged = true;
      } catch (error) {
        if (error instanceof Fault) continue;
        if (!crossings.isCrash(error)) throw error;
        life = await rebirth();
      }
    }
    for (let step = 0; ; step++) {
      if (step > MAX_STEPS) throw new Error("The conversation is stuck.");
      if (crossings.crashed) life = await rebirth();
      await breathe();
      if (crossings.crashed) continue;
      await answer();
      if (crossings.crashed) continue;
      if (!life.runtime.busy && !hasSideCall(life.runtime) && !isExtracting(life.runtime)) break;
      if (step % 20 !== 19) continue;
      const due = clock.now() + (life.runtime.dueIn ?? 0);
      if (clock.nextDue !== undefined && clock.nextDue <= due) {
        await clock.runNext();
        continue;
      }
      await clock.advance(due - clock.now());
      if (crossings.crashed) continue;
      try {
        life.runtime.reconcile();
      } catch (error) {
        // The life ended within the call.
        if (!crossings.isCrash(error)) throw error;
      }
    }
  }

  crossings.disarm();
  const queries = new ConversationQueries(life.runtime.store);
  reconnect({ runtime: life.runtime, queries });
  const { items } = queries.turns();
  const turns = items.map(({ id }) => queries.turn(life.runtime.state, id));
  const compactions = life.runtime.store.events.load("tester", { limit: 1_000 }).filter(isCompaction).length;
  const { usage, record } = life.runtime.state;
  return { turns, client, lives, compactions, usage, title: record.title };
}

/** Runs all promise reactions that are ready. */
function breathe(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
