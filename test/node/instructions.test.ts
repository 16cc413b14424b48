/** Effects as a conversation orders them: one kind of events whichever way a tool runs, and failures that are reported, not thrown. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import type { ModelGateway } from "../../src/model/gateway.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import type { TaskExecutor } from "../../src/protocol/executor-api.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { messageOfAda, recordOf } from "../support/records.ts";
import { SteeredConversation } from "../support/steered-model.ts";

beforeEach(() => void vi.spyOn(console, "error").mockReturnValue(undefined));

/** A library with two tools that end as `how` defines: in the foreground and in the background. */
function work(how: { end: () => Promise<string> }) {
  const tool = (name: string, async: boolean) =>
    defineTool({
      name,
      description: "Works.",
      effect: "idempotent",
      async,
      input: z.object({}),
      execute: () => how.end(),
    });
  return defineLibrary("work", { tools: [tool("sync", false), tool("async", true)] });
}

const OVER = new Set<Frame["type"]>(["tool.completed", "tool.failed", "tool.cancelled"]);

describe("a tool call", () => {
  test.each<[how: string, end: () => Promise<string>, events: string[]]>([
    ["succeeds", async () => "done", ["tool.requested", "tool.completed"]],
    ["fails", () => Promise.reject(new Error("No.")), ["tool.requested", "tool.failed"]],
    ["is cancelled", () => new Promise(() => undefined), ["tool.requested", "tool.cancelled"]],
  ])("E13 that %s has the same events in the background as in the foreground", async (how, end, events) => {
    const eventsOf = async (name: string) => {
      const room = await SteeredConversation.create(work({ end }));
      const id = await room.say("Go");
      (await room.request()).call([name, {}]);
      await room.until(({ type }) => type === "tool.requested");
      if (how === "is cancelled") await room.stop(id);
      await room.until(({ type }) => OVER.has(type));
      const { operationId } = room.frames.find(({ type }) => OVER.has(type)) ?? expect.fail("no end");
      const journal = room.queries.journal(room.runtime.state).items;
      return {
        journal: journal.flatMap((entry) => (entry.operationId === operationId ? [entry.type] : [])),
        frames: room.frames.flatMap((frame) => (frame.operationId === operationId ? [frame.type] : [])),
      };
    };
    expect(await eventsOf("sync")).toEqual({ journal: events, frames: events });
    expect(await eventsOf("async")).toEqual({ journal: events, frames: events });
  });
});

/** Runs a turn with these ways to reach the outside. */
async function turnWith({ gateway, executor }: { gateway: ModelGateway; executor: TaskExecutor }) {
  const database = new NodeSqlDatabase();
  const frames: Frame[] = [];
  const over = Promise.withResolvers<void>();
  const runtime = new ConversationRuntime({
    database,
    keyValue: new NodeKeyValue(database),
    clock: systemClock,
    ids: systemIds,
    gateway,
    adapters: adapterFor,
    executor,
    gate: allowAll,
    ...noMail,
    armWakeup: async () => undefined,
    publish: (published) => {
      frames.push(...published);
      if (published.some(({ type }) => type === "turn.completed" || type === "turn.failed")) over.resolve();
    },
  });
  const library = work({ end: async () => "done" });
  const profile = { provider: "openai", modelId: "m", baseUrl: "http://model/v1" } as const;
  const persona = { identity: { systemPrompt: "Test." }, tools: { toolIds: ["work/sync"] } };
  await runtime.create(
    recordOf(await resolveChain(new Registry(new DeployedCode([library])), persona, profile)),
  );
  const { data, type } = messageOfAda("Go");
  const { turnId } = await runtime.accept({ type, caller: { type: "user", userId: "ada" }, data });
  await over.promise;
  return { frames, turn: new ConversationQueries(runtime.store).turn(runtime.state, turnId), runtime };
}

const executor = localExecutor(new DeployedCode([work({ end: async () => "done" })]), systemClock);

/** A model that calls the tool, and then reports the result. */
const calling: ModelGateway = {
  async *stream({ body }): AsyncGenerator<ModelDelta> {
    const isFirst = !JSON.stringify(body.messages).includes('"tool_calls"');
    if (isFirst) yield { type: "tool-call", index: 0, id: "call_0", name: "sync", arguments: "{}" };
    else yield { type: "text", text: "It is so." };
    yield { type: "finish", reason: isFirst ? "tool_calls" : "stop" };
  },
};

describe("E10 an effect that fails", () => {
  test("by an exception of the transport to the model ends its turn as failed, and the conversation continues", async () => {
    const broken: ModelGateway = {
      stream: () => {
        throw new TypeError("Cannot read properties of undefined");
      },
    };
    const { frames, turn, runtime } = await turnWith({ gateway: broken, executor });
    expect(turn).toMatchObject({ status: "failed", calls: [{ outcome: { ok: false } }] });
    expect(frames.at(-1)).toMatchObject({ type: "turn.failed" });
    const { data, type } = messageOfAda("Again");
    await runtime.accept({ type, caller: { type: "user", userId: "ada" }, data });
    expect(runtime.state.turns).toBe(2);
  });

  test.each<[string, TaskExecutor["run"]]>([
    [
      "is thrown",
      () => {
        throw new Error("No such service.");
      },
    ],
    ["arrives later", async () => Promise.reject(new Error("No such service."))],
  ])("by an exception of the Executor that %s is a failed call, which the model gets", async (_, run) => {
    const { frames, turn } = await turnWith({ gateway: calling, executor: { run } });
    expect(turn).toMatchObject({ status: "completed", answer: "It is so.", issues: { toolFailures: 1 } });
    expect(frames.filter(({ type }) => type === "tool.failed")).toHaveLength(1);
  });
});
