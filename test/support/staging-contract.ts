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
import type { Signal } from "../../src/agents/conversation/core/signals.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { localExecutor } from "../../src/agents/executor/local.ts";
import { DeployedCode } from "../../src/library/deployed-code.ts";
import { Registry } from "../../src/library/registry.ts";
import { resolveChain } from "../../src/library/resolve.ts";
import { allowAll } from "../../src/policy/gate.ts";
import type { KeyValue } from "../../src/ports/key-value.ts";
import type { SqlDatabase } from "../../src/ports/sql-database.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { scriptedFetch, textPayloads } from "./chat-replies.ts";
import { noMail } from "./no-mail.ts";

export interface Stores {
  database: SqlDatabase;
  keyValue: KeyValue;
}

const ARMED = "test:armed";
const ADA = { type: "user", userId: "ada" } as const;

/** A conversation that starts two turns for each envelope of the type `talk`. */
async function openHost({ database, keyValue }: Stores) {
  const frames: Frame[] = [];
  const modelCalls: string[] = [];
  let finished = () => {};
  /** Settles what `armWakeup` returns. */
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
      ...noMail,
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
  runtime.create({
    id: "conv_test",
    tenant: "test",
    title: null,
    projectId: "default",
    participants: [{ type: "user", id: "ada" }],
    agents: [
      { id: "tester", chain: await resolveChain(registry, { identity: { systemPrompt: "Test." } }, profile) },
    ],
    createdAt: 1,
  });
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
  const says = (id: string): Signal => ({
    type: "conversation.user.message",
    id,
    caller: ADA,
    data: { content: `Message ${id}` },
  });
  mailbox.receives("talk", z.null(), (_, { afterCommit }) => {
    const first = runtime.stage([says("a")]);
    const both = runtime.stage([says("b")], first);
    afterCommit(() => runtime.release(both));
    afterStaging();
    return null;
  });
  const operationId = newOperationId();
  const from = { kind: "workflow", tenant: "test", id: "run_1" };
  return {
    frames,
    modelCalls,
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
      expect(isAnswered, "turns run meanwhile").toBe(false);
      armed();
      expect(await answer).toMatchObject({ type: "done" });
    });
  });

  test("STAGE-3 a change that is released between stage and release is not lost", async () => {
    await withStores(async (stores) => {
      const host = await openHost(stores);
      const { runtime } = host;
      const says = (content: string): Signal => ({
        type: "conversation.user.message",
        caller: ADA,
        data: { content },
      });
      const first = runtime.stage([says("first")]);
      const second = runtime.stage([says("second")], first);
      await runtime.release(first);
      await runtime.release({ ...second, commits: second.commits.slice(1) });
      expect(runtime.state.turns).toBe(2);
      await host.finished;
      expect(host.reloaded()).toEqual(runtime.state);
    });
  });
}
