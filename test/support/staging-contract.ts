/**
 * A mailbox handler that stages two messages in the transaction of its receipt, on the real mailbox, runtime and storage.
 * Only the provider's HTTP responses are scripted.
 */

import { expect, test } from "vitest";
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import { NotNow } from "../../src/agents/base/mailbox/handlers.ts";
import { Mailbox } from "../../src/agents/base/mailbox/mailbox.ts";
import { newOperationId } from "../../src/agents/base/mailbox/operation-id.ts";
import type { UserMessage } from "../../src/agents/conversation/core/signals.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { allowAll } from "../../src/policy/gate.ts";
import type { KeyValue } from "../../src/ports/key-value.ts";
import type { ActorDatabase } from "../../src/ports/sql-database.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { defined } from "../../src/shared/defined.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { RateLimit } from "../../src/shared/token-bucket.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { scriptedFetch, textPayloads } from "./chat-replies.ts";
import { recordOf } from "./records.ts";

export interface Stores {
  database: ActorDatabase;
  keyValue: KeyValue;
}

const ARMED = "test:armed";
const ADA = { type: "user", userId: "ada" } as const;

const says = (id: string, data: Partial<UserMessage["data"]> = {}): UserMessage => ({
  type: "conversation.user.message",
  id,
  caller: ADA,
  data: { content: `Message ${id}`, ...data },
});

/** A conversation that starts two turns for each envelope of the type `talk`. */
async function openHost(
  { database, keyValue }: Stores,
  {
    turnLimit,
    create = true,
    announced = Promise.resolve(),
  }: { turnLimit?: RateLimit; create?: boolean; announced?: Promise<void> } = {},
) {
  const frames: Frame[] = [];
  const modelCalls: string[] = [];
  let finished = () => {};
  /** Settles the promise of `armWakeup`. */
  let platform: Promise<void> = Promise.resolve();
  let afterStaging = () => {};
  const scripted = scriptedFetch(() => textPayloads("Hello."));
  const provider: typeof scripted = (url, init) => {
    modelCalls.push(url);
    return scripted(url, init);
  };
  const open = () =>
    new ConversationRuntime({
      database,
      keyValue,
      clock: systemClock,
      ids: systemIds,
      gateway: createModelGateway({ secret: () => undefined, fetch: provider, clock: systemClock }),
      adapters: adapterFor,
      executor: localExecutor(new DeployedCode([]), systemClock),
      gate: allowAll,
      ...defined({ turnLimit }),
      ...noMail,
      listing: { announce: () => [announced], note: async () => undefined },
      armWakeup: (milliseconds) => {
        keyValue.put(ARMED, milliseconds);
        return platform;
      },
      publish: (published) => {
        frames.push(...published);
        if (frames.filter(({ type }) => type === "turn.completed").length === 2) finished();
      },
    });
  const runtime = open();
  const profile = { provider: "openai", modelId: "m", baseUrl: "http://provider/v1" } as const;
  const registry = new Registry(new DeployedCode([]));
  const record = recordOf(await resolveChain(registry, { identity: { systemPrompt: "Test." } }, profile));
  if (create) await runtime.create(record);
  const self = { kind: "conversation", tenant: "test", id: "conv_test" };
  const mailbox = new Mailbox({
    database,
    keyValue,
    clock: systemClock,
    checkStorage: () => undefined,
    whenArmed: () => runtime.whenArmed(),
    self: () => self,
    deliver: () => new Promise(() => undefined),
    arm: () => Promise.resolve(),
    directory: () => null,
  });
  mailbox.receives("talk", z.null(), (_, { afterCommit }) => {
    const unit = runtime.begin();
    for (const id of ["a", "b"]) runtime.stageMessage(unit, says(id));
    afterCommit(() => unit.release());
    afterStaging();
    return null;
  });
  const operationId = newOperationId();
  const from = { kind: "workflow", tenant: "test", id: "run_1" };
  return {
    frames,
    modelCalls,
    record,
    /** Resolves when two turns are completed. */
    finished: new Promise<void>((resolve) => {
      finished = resolve;
    }),
    runtime,
    /** The conversation as another life loads it. */
    reloaded: () => open().state,
    isArmed: () => keyValue.get(ARMED) !== undefined,
    armWith: (promise: Promise<void>) => {
      platform = promise;
    },
    beforeReturning: (body: () => void) => {
      afterStaging = body;
    },
    receive: (attempt = 1) =>
      mailbox.receive(
        { operationId, from, to: self, type: "talk", body: null, sentAt: systemClock.now() },
        { number: attempt, last: false },
      ),
  };
}

type Host = Awaited<ReturnType<typeof openHost>>;

/** Expects a conversation on disk, in memory, published and armed as it was created. */
async function expectUntouched(host: Host, created: Host["runtime"]["state"]): Promise<void> {
  // Effects start in the microtasks after a commit.
  await new Promise((resolve) => setTimeout(resolve, 0));
  expect(host.runtime.state, "in memory").toBe(created);
  expect(host.reloaded(), "on disk").toEqual(created);
  expect(host.runtime.store.turnOfKey(ADA, "a"), "key").toBeUndefined();
  expect(host.frames, "published").toEqual([]);
  expect(host.modelCalls, "started").toEqual([]);
  expect(host.isArmed(), "armed on disk").toBe(false);
  expect(host.runtime.busy).toBe(false);
}

/** Defines the tests. `withStores` calls its argument with new, empty stores. */
export function stagingContract(
  withStores: (body: (stores: Stores) => Promise<void>) => Promise<void>,
): void {
  test.each([
    ["a defect", () => new Error("A defect."), { type: "busy" }],
    ["not now", () => new NotNow("Later."), { type: "busy" }],
    ["a refusal", () => new DramatisError("CONFLICT", "No."), { type: "refused", recorded: true }],
  ])("STAGE-1 STAGE-2 two staged messages, then %s: no trace", async (_, thrown, answer) => {
    await withStores(async (stores) => {
      const host = await openHost(stores);
      const created = host.runtime.state;
      host.beforeReturning(() => {
        expect(host.runtime.state, "staging changes no memory").toBe(created);
        throw thrown();
      });
      expect(await host.receive()).toMatchObject(answer);
      await expectUntouched(host, created);
      // The flag of the wake-up has no trace either: the next turn arms it.
      host.beforeReturning(() => undefined);
      if (answer.type !== "busy") return;
      expect(await host.receive(2)).toMatchObject({ type: "done" });
      expect(host.isArmed()).toBe(true);
      await host.finished;
    });
  });

  test("STAGE-1 STAGE-2 RUN-1 two staged messages, and a commit: both turns, published after it, then run", async () => {
    await withStores(async (stores) => {
      const host = await openHost(stores);
      host.beforeReturning(() => {
        expect(host.frames).toEqual([]);
        expect(host.modelCalls).toEqual([]);
      });
      expect(await host.receive()).toEqual({ type: "done", result: null });
      expect(host.runtime.state.turns).toBe(2);
      expect(host.isArmed()).toBe(true);
      await host.finished;
      const started = host.frames.filter(({ type }) => type === "turn.started");
      expect(started).toHaveLength(2);
      const numbers = host.frames.flatMap((frame) => ("seq" in frame ? [frame.seq] : []));
      expect(numbers, "in the journal's order").toEqual([...numbers].sort((a, b) => (a ?? 0) - (b ?? 0)));
      expect(host.modelCalls).toHaveLength(2);
      expect(host.reloaded()).toEqual(host.runtime.state);
      expect(await host.receive(2), "the receipt holds").toEqual({ type: "done", result: null });
      expect(host.runtime.state.turns).toBe(2);
    });
  });

  test("RUN-6 the receipt waits for the wake-up of the turns that it started", async () => {
    await withStores(async (stores) => {
      const host = await openHost(stores);
      let armed = () => {};
      host.armWith(
        new Promise((resolve) => {
          armed = resolve;
        }),
      );
      let isAnswered = false;
      const answer = host.receive().then((value) => {
        isAnswered = true;
        return value;
      });
      await host.finished;
      expect(isAnswered, "turns run in between").toBe(false);
      armed();
      expect(await answer).toMatchObject({ type: "done" });
    });
  });

  test("STAGE-3 STAGE-8 a committed unit that is not released yet stops the next commit only once", async () => {
    await withStores(async (stores) => {
      const host = await openHost(stores);
      const { runtime } = host;
      const unit = runtime.begin();
      runtime.stageMessage(unit, says("first"));
      await expect(runtime.accept(says("second"))).rejects.toThrow();
      await runtime.accept(says("second"));
      expect(runtime.state.turns).toBe(2);
      await unit.release();
      await host.finished;
      expect(host.reloaded()).toEqual(runtime.state);
    });
  });

  test("STAGE-9 a store that cannot be read after a commit: both turns run, published before the next turn", async () => {
    await withStores(async ({ database, keyValue }) => {
      let fails = false;
      const read: ActorDatabase["all"] = (statement, ...values) => {
        if (fails && !database.isInTransaction()) throw new Error("The store cannot be read.");
        return database.all(statement, ...values);
      };
      const failing: ActorDatabase = {
        run: (statement, ...values) => database.run(statement, ...values),
        all: read,
        each: (statement, ...values) => database.each(statement, ...values),
        transaction: (body) => database.transaction(body),
        isInTransaction: () => database.isInTransaction(),
      };
      const host = await openHost({ database: failing, keyValue });
      host.beforeReturning(() => {
        fails = true;
      });
      await expect(host.receive()).rejects.toThrow("cannot be read");
      expect(host.frames, "not known to be stored").toEqual([]);
      fails = false;
      const { turnId } = await host.runtime.accept(says("c"));
      await host.finished;
      const started = host.frames.filter(({ type }) => type === "turn.started");
      expect(started).toHaveLength(3);
      expect(started.at(-1)).toMatchObject({ turnId });
      const numbers = started.map(({ seq }) => seq ?? 0);
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    });
  });

  test("STAGE-5 refuses a message that is accepted inside a transaction, and accepts the next message", async () => {
    await withStores(async (stores) => {
      const host = await openHost(stores);
      const created = host.runtime.state;
      let refused: Promise<unknown> = Promise.resolve();
      stores.database.transaction(() => {
        refused = host.runtime.accept(says("a"));
      });
      await expect(refused).rejects.toThrow("unit of work");
      await expectUntouched(host, created);
      for (const id of ["a", "b"]) await host.runtime.accept(says(id));
      await host.finished;
      expect(host.reloaded()).toEqual(host.runtime.state);
    });
  });

  test("RUN-5 STAGE-2 a staged message passes the same checks as every other message, including checks against its own unit", async () => {
    await withStores(async (stores) => {
      const { runtime } = await openHost(stores, { turnLimit: { perMinute: 1, burst: 2 } });
      const unit = runtime.begin();
      const first = runtime.stageMessage(unit, says("a"));
      expect(runtime.stageMessage(unit, says("a")), "the same key").toMatchObject({ turnId: first.turnId });
      expect(() => runtime.stageMessage(unit, says("a", { content: "Another." }))).toThrow("key");
      expect(() => runtime.stageMessage(unit, says("x", { replyToMessageId: "msg_none" }))).toThrow();
      const image = [{ type: "image", url: "https://example.com/a.png" }] as UserMessage["data"]["content"];
      expect(() => runtime.stageMessage(unit, says("x", { content: image }))).toThrow("attachments");
      runtime.stageMessage(unit, says("b"));
      expect(() => runtime.stageMessage(unit, says("c"))).toThrow("Too many turns");
      await unit.release();
      expect(runtime.state.turns).toBe(2);
      await expect(runtime.accept(says("c")), "the unit's turns count").rejects.toThrow("Too many turns");
    });
  });

  test("STAGE-1 a conversation that is created in a transaction exists with its first turn, or not at all", async () => {
    await withStores(async (stores) => {
      let armed = () => {};
      const announced = new Promise<void>((resolve) => (armed = resolve));
      const host = await openHost(stores, { create: false, announced });
      const { runtime, record } = host;
      const stage = () => {
        const unit = runtime.begin();
        runtime.stageCreation(unit, record);
        for (const id of ["a", "b"]) runtime.stageMessage(unit, says(id));
        return unit;
      };
      let rolledBack: ReturnType<typeof stage> | undefined;
      expect(() =>
        stores.database.transaction(() => {
          rolledBack = stage();
          throw new Error("The caller fails.");
        }),
      ).toThrow("caller");
      expect([runtime.exists, host.frames, host.isArmed()]).toEqual([false, [], false]);
      await expect(rolledBack?.release()).rejects.toThrow("rolled back");
      expect(runtime.exists).toBe(false);
      let isReleased = false;
      const released = stores.database
        .transaction(stage)
        .release()
        .then(() => (isReleased = true));
      await host.finished;
      expect(isReleased, "before the announcement is armed").toBe(false);
      armed();
      await released;
      expect(host.reloaded()).toEqual(runtime.state);
    });
  });
}
