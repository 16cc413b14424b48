/** The hooks of a persona: the task that assembles the request of a cycle, and the task that extracts memories of a turn. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineLibrary, defineTool, type ToolContext } from "../../src/library/define/define.ts";
import { defineTask } from "../../src/library/define/define-task.ts";
import type { ToolEffect } from "../../src/protocol/definitions.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";
import { repliesSoFar, textPayloads } from "../support/chat-replies.ts";
import { runWorld, type WorldOptions } from "../support/crash-world.ts";
import { Crossings } from "../support/crossings.ts";
import { isExtracting } from "../support/running-work.ts";
import { SteeredConversation } from "../support/steered-model.ts";

beforeEach(() => void vi.spyOn(console, "error").mockReturnValue(undefined));
beforeEach(() => void vi.spyOn(console, "warn").mockReturnValue(undefined));
afterEach(() => vi.restoreAllMocks());

type Run = (input: JsonObject, context: ToolContext) => unknown;

interface Hooks {
  assemble?: Run;
  extract?: Run;
  effect?: ToolEffect;
  recentTurnsLimit?: number;
}

const echo = defineTool({
  name: "echo",
  description: "Echoes.",
  effect: "idempotent",
  input: z.object({ text: z.string() }),
  execute: ({ text }) => ({ text }),
});

function library({ assemble, extract, effect = "idempotent" }: Hooks) {
  const task = (id: string, run: Run) =>
    defineTask({
      id,
      input: z.looseObject({}),
      effect,
      execute: (input, context) => run(input as JsonObject, context),
    });
  return defineLibrary("lib", {
    tools: [echo],
    tasks: [
      ...(assemble === undefined ? [] : [task("assemble", assemble)]),
      ...(extract === undefined ? [] : [task("extract", extract)]),
    ],
  });
}

function memoryOf({ assemble, extract, recentTurnsLimit = 20 }: Hooks) {
  return {
    recentTurnsLimit,
    ...(assemble === undefined ? {} : { contextAssembly: { task: "lib/assemble" } }),
    ...(extract === undefined
      ? {}
      : {
          ...({ scope: "agent", recall: false, memoryTools: false } as const),
          memoryExtraction: { task: "lib/extract" },
        }),
  };
}

const begin = (hooks: Hooks) => SteeredConversation.create(library(hooks), {}, memoryOf(hooks));
const is = (type: Frame["type"], turnId?: string) => (frame: Frame) =>
  frame.type === type && (turnId === undefined || frame.turnId === turnId);
const entries = (room: SteeredConversation) => room.queries.journal(room.runtime.state, { limit: 200 }).items;
const types = (room: SteeredConversation) => entries(room).map(({ type }) => type);

const requestOf = (input: JsonObject): JsonObject => ({
  model: "chosen-by-the-hook",
  stream: true,
  temperature: 0.25,
  messages: [{ role: "user", content: `Asked: ${JSON.stringify(input.user_message)}` }],
});

describe("HOOK-2 a context hook", () => {
  test("A35 A36 A11 gets the contract's keys, and its output is the provider's request, verbatim", async () => {
    const inputs: JsonObject[] = [];
    const room = await begin({
      assemble: (input) => {
        inputs.push(input);
        return requestOf(input);
      },
      extract: () => [],
    });
    const id = await room.say("Hello");
    const first = await room.request();
    expect(first.body).toEqual(requestOf({ user_message: "Hello" }));
    first.call(["echo", { text: "x" }]);
    const second = await room.request();
    // Later moves extend the request. Its beginning stays.
    expect({ ...second.body, messages: [] }).toEqual({ ...first.body, messages: [] });
    expect(second.messages.slice(0, 1)).toEqual(first.messages);
    expect(second.messages.slice(1).map(({ role }) => role)).toEqual(["assistant", "tool"]);
    second.answer("Done.");
    await room.until(is("turn.finalized"));
    expect(inputs).toEqual([
      {
        conversation_id: room.runtime.state.record.id,
        turn_id: id,
        user_message: "Hello",
        recent_turns: [],
        model_profile: { provider: "openai", modelId: "steered", baseUrl: "http://model/v1" },
        tool_definitions: [{ name: "echo", description: "Echoes.", inputSchema: expect.anything() }],
        system_instructions: ["Test."],
        active_turns: [],
      },
    ]);
    expect(room.turn(id)).toMatchObject({
      status: "completed",
      answer: "Done.",
      contextAssemblyRunId: expect.stringMatching(/^op_/),
      memoryExtractionRunId: expect.stringMatching(/^op_/),
    });
    expect(types(room)).toEqual([
      "conversation.started",
      "turn.started",
      "message.user",
      "context_assembly.started",
      "context_assembly.completed",
      "message.started",
      "message.completed",
      "tool.requested",
      "tool.completed",
      "message.started",
      "message.completed",
      "turn.completed",
      "memory_extraction.started",
      "memory_extraction.completed",
      "turn.finalized",
    ]);
    const [hook] = entries(room).filter(({ type }) => type === "context_assembly.completed");
    expect(hook).toMatchObject({ operationId: room.turn(id).contextAssemblyRunId, turnId: id });
  });

  test("A34 A30 A21 sees the recent turns, the replied-to message and the active turns with their operations", async () => {
    const inputs: JsonObject[] = [];
    const room = await begin({
      recentTurnsLimit: 3,
      assemble: (input) => {
        inputs.push(input);
        return requestOf(input);
      },
    });
    for (let n = 1; n <= 5; n++) {
      const id = await room.say(`Message ${n}`);
      (await room.request()).answer(`Answer ${n}`);
      await room.until(is("turn.completed", id));
    }
    expect(inputs[4]?.recent_turns).toEqual(
      [2, 3, 4].map((n) => ({
        messages: [
          { role: "user", content: `Message ${n}` },
          { role: "assistant", content: `Answer ${n}` },
        ],
      })),
    );
    const answer = room.frames.find(is("message.completed"));
    const waiting = await room.say("Wait");
    const open = await room.request();
    await room.say("And this?", { replyToMessageId: answer?.messageId ?? "" });
    await room.request();
    expect(inputs[6]).toMatchObject({
      reply_to: { role: "agent", text: "Answer 1" },
      active_turns: [{ turn_id: waiting, input: "Wait", messages: [], pending_operations: [] }],
    });
    open.answer("Waited.");
  });

  test("A38 HOOK-3 is tried three times with gaps of 100 and 200 ms; then the turn fails without a model call", async () => {
    const starts: number[] = [];
    const room = await begin({
      assemble: () => {
        starts.push(performance.now());
        throw new Error("The index is away.");
      },
    });
    const id = await room.say("Hello");
    await room.until(is("turn.failed", id));
    expect(starts).toHaveLength(3);
    const [one = 0, two = 0, three = 0] = starts;
    expect(two - one).toBeGreaterThanOrEqual(95);
    expect(three - two).toBeGreaterThanOrEqual(195);
    expect(room.untaken).toBe(0);
    expect(room.turn(id)).toMatchObject({
      status: "failed",
      error: {
        code: "CONTEXT_ASSEMBLY_FAILED",
        message: expect.stringContaining("after 3 attempts: The index is away."),
        retriable: true,
      },
      calls: [],
    });
    const failures = entries(room).filter(({ type }) => type === "context_assembly.failed");
    expect(failures.map(({ data }) => data)).toMatchObject([
      { attempt: 1, final: false },
      { attempt: 2, final: false },
      { attempt: 3, final: true },
    ]);
    expect(types(room).at(-1)).toBe("turn.failed");
  });

  test("A38 has 30 seconds an attempt", async () => {
    const hooks = { assemble: () => new Promise(() => undefined) };
    const world = await runWorld(
      { ...WORLD, library: library(hooks), persona: personaOf(hooks) },
      new Crossings(),
    );
    expect(world.turns[0]).toMatchObject({
      status: "failed",
      error: { code: "CONTEXT_ASSEMBLY_FAILED", message: expect.stringContaining("within 30000 ms") },
      latencyMs: 90_300,
    });
  });

  test.each<[string, Json]>([
    ["a text", "hello"],
    ["nothing", null],
    ["a list", []],
  ])("that returns %s fails", async (_, output) => {
    const room = await begin({ effect: "once", assemble: () => output });
    const id = await room.say("Hello");
    await room.until(is("turn.failed", id));
    expect(room.turn(id).error?.message).toContain("must return the provider's request, an object");
    // HOOK-3: a `once` task is never repeated.
    expect(types(room).filter((type) => type === "context_assembly.failed")).toHaveLength(1);
  });

  test("HOOK-6 is aborted when its turn is stopped", async () => {
    const { promise: aborted, resolve } = Promise.withResolvers<void>();
    const { promise: begun, resolve: start } = Promise.withResolvers<void>();
    const room = await begin({
      assemble: (_, { signal }) => {
        signal.addEventListener("abort", () => resolve());
        start();
        return new Promise(() => undefined);
      },
    });
    const id = await room.say("Hello");
    await begun;
    await room.stop(id);
    await aborted;
    expect(room.turn(id)).toMatchObject({ status: "failed", error: { code: "CANCELLED" } });
    expect(room.untaken).toBe(0);
  });

  test("A18 assembles each cycle of a turn with late results", async () => {
    const inputs: JsonObject[] = [];
    const done = Promise.withResolvers<string>();
    const job = defineTool({
      name: "job",
      description: "Works.",
      effect: "idempotent",
      async: true,
      input: z.object({}),
      execute: () => done.promise,
    });
    const hooks: Hooks = {
      assemble: (input) => {
        inputs.push(input);
        return { ...requestOf(input), seed: inputs.length };
      },
    };
    const own = { ...library(hooks), tools: [job] };
    const room = await SteeredConversation.create(own, {}, memoryOf(hooks));
    const id = await room.say("Work");
    (await room.request()).call(["job", {}]);
    (await room.request()).answer("I work.");
    await room.until(is("turn.waiting", id));
    done.resolve("42 found");
    const next = await room.request();
    expect(next.body.seed).toBe(2);
    expect(next.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
      "system",
    ]);
    expect(next.messages.at(-1)?.content).toContain("42 found");
    next.answer("42.");
    await room.until(is("turn.completed", id));
    expect(inputs).toHaveLength(2);
  });

  test("a turn that is queued after it waits", async () => {
    const gate = Promise.withResolvers<void>();
    const hooks: Hooks = { assemble: async (input) => gate.promise.then(() => requestOf(input)) };
    const room = await SteeredConversation.create(library(hooks), { order: "queued" }, memoryOf(hooks));
    await room.say("One");
    const second = await room.say("Two");
    expect(room.turn(second).phase).toBe("queued");
    gate.resolve();
    (await room.request()).answer("1");
    (await room.request()).answer("2");
    await room.until(is("turn.completed", second));
  });
});

describe("HOOK-4 an extraction", () => {
  test("A39 gets the message, the calls and the results, and its operations are journaled", async () => {
    const inputs: JsonObject[] = [];
    const operations = [
      { op: "write", content: "Likes tea.", type: "fact", significance: 0.5, metadata: { from: ["chat"] } },
      { op: "delete", memoryId: "mem_1" },
    ];
    const room = await begin({
      extract: (input) => {
        inputs.push(input);
        return operations;
      },
    });
    const id = await room.say("I like tea");
    (await room.request()).call(["echo", { text: "tea" }]);
    (await room.request()).answer("Noted.");
    await room.until(is("turn.finalized"));
    expect(inputs).toMatchObject([
      {
        turn_id: id,
        user_message: "I like tea",
        agent_message: "Noted.",
        turn_transcript: [
          {
            sequence: 1,
            tool_call: { name: "echo", input: { text: "tea" } },
            tool_result: { success: true, result: { text: "tea" } },
          },
          { sequence: 2, text: "Noted." },
        ],
      },
    ]);
    expect(entries(room).find(({ type }) => type === "memory_extraction.completed")?.data).toEqual({
      operations,
    });
    expect(room.frames.at(-1)).toMatchObject({
      type: "turn.finalized",
      turnId: id,
      data: { memoryExtractionStatus: "completed" },
    });
    expect(room.turn(id)).not.toHaveProperty("issues");
    expect(room.runtime.state.extraction).toBeUndefined();
  });

  test("A40 HOOK-7 that fails leaves its turn completed; three failures in a row are reported, once, and the lost turns are extracted after a success", async () => {
    let runs = 0;
    const room = await begin({
      extract: () => {
        runs += 1;
        if (runs <= 12) throw new Error("No space.");
        return null;
      },
    });
    const failing = () => room.frames.filter((frame) => frame.type === "error");
    for (let n = 1; n <= 4; n++) {
      const id = await room.say(`Message ${n}`);
      (await room.request()).answer("Yes.");
      await room.until(is("turn.finalized", id));
      expect(room.turn(id)).toMatchObject({
        status: "completed",
        answer: "Yes.",
        issues: { memoryExtractionFailed: true },
      });
      expect(room.frames.filter(is("turn.finalized")).at(-1)?.data).toEqual({
        memoryExtractionStatus: "failed",
      });
      expect(runs).toBe(3 * n);
      expect(failing()).toHaveLength(n < 3 ? 0 : 1);
    }
    expect(failing()[0]?.data).toMatchObject({
      code: "MEMORY_EXTRACTION_FAILING",
      message: expect.stringContaining("No space."),
    });
    expect(types(room)).toContain("memory_extraction.failing");
    const id = await room.say("Message 5");
    (await room.request()).answer("Yes.");
    await room.until(is("turn.finalized", id));
    // The lost turns begin once more: each has one attempt, and a turn is final once.
    await expect.poll(() => room.runtime.state.extraction).toBeUndefined();
    expect(runs).toBe(12 + 1 + 4);
    expect(room.frames.filter(is("turn.finalized"))).toHaveLength(5);
  });

  test("A40 a stopped extraction is not a failure, and reports none", async () => {
    let runs = 0;
    const waits = Promise.withResolvers<void>();
    const room = await begin({
      extract: async (_input, { signal }) => {
        runs += 1;
        if (runs <= 6) throw new Error("No space.");
        waits.resolve();
        await new Promise((_resolve, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason)),
        );
        return null;
      },
    });
    for (const text of ["one", "two", "three"]) {
      const id = await room.say(text);
      (await room.request()).answer("Yes.");
      if (text !== "three") await room.until(is("turn.finalized", id));
    }
    await waits.promise;
    await room.stopAll();
    expect(room.runtime.state.extraction?.failures).toEqual({ tester: 2 });
    expect(types(room)).not.toContain("memory_extraction.failing");
  });

  test.each<[string, unknown]>([
    ["an unknown operation", [{ op: "forget" }]],
    ["a write without content", [{ op: "write" }]],
    ["too many", Array.from({ length: 101 }, () => ({ op: "delete", memoryId: "m" }))],
    ["too long a text", [{ op: "write", content: "x".repeat(70_000) }]],
    ["an object", { op: "write", content: "x" }],
  ])("with %s fails", async (_, output) => {
    const room = await begin({ effect: "once", extract: () => output });
    const id = await room.say("Hello");
    (await room.request()).answer("Yes.");
    await room.until(is("turn.finalized", id));
    expect(room.turn(id).issues).toEqual({ memoryExtractionFailed: true });
  });

  test("HOOK-6 ends when the conversation is stopped, and not when another turn is", async () => {
    const aborts: string[] = [];
    const begun = Promise.withResolvers<void>();
    const room = await begin({
      extract: (input, { signal }) => {
        signal.addEventListener("abort", () => aborts.push(String(input.turn_id)));
        begun.resolve();
        return new Promise(() => undefined);
      },
    });
    const first = await room.say("One");
    (await room.request()).answer("1");
    await begun.promise;
    const second = await room.say("Two");
    await room.request();
    await room.stop(second);
    expect(isExtracting(room.runtime)).toBe(true);
    await room.stopAll();
    await room.until(is("turn.finalized", first));
    expect(isExtracting(room.runtime)).toBe(false);
    await expect.poll(() => aborts).toEqual([first]);
    expect(room.turn(first)).toMatchObject({ status: "completed", issues: { memoryExtractionFailed: true } });
  });

  test("HOOK-1 a persona without hooks stores no hook data", async () => {
    const room = await begin({});
    const id = await room.say("Hello");
    (await room.request()).answer("Yes.");
    await room.until(is("turn.completed", id));
    const turn = room.queries.requireTurn(room.runtime.state, id);
    expect(Object.keys(turn)).not.toEqual(expect.arrayContaining(["hooks"]));
    expect(room.runtime.state).not.toHaveProperty("extraction");
    expect(types(room).slice(-2)).toEqual(["turn.completed", "turn.finalized"]);
    expect(room.turn(id)).toMatchObject({ contextAssemblyRunId: null, memoryExtractionRunId: null });
  });

  test("a failed turn has no extraction", async () => {
    const room = await begin({ extract: () => [] });
    const id = await room.say("Hello");
    (await room.request()).fail("No.");
    await room.until(is("turn.failed", id));
    expect(types(room)).not.toContain("memory_extraction.started");
  });
});

const WORLD: Omit<WorldOptions, "library" | "persona"> = {
  provider: (body) => textPayloads(`Answer after ${repliesSoFar(body)}`),
  messages: ["Hello", "And again"],
};

function personaOf(hooks: Hooks) {
  return { identity: { systemPrompt: "Test." }, memory: memoryOf(hooks) };
}

describe("HOOK-5 A72 a crash at any boundary", () => {
  test.each<ToolEffect>(["pure", "idempotent", "once"])(
    "of an agent with %s hooks: turns end, and a `once` task runs once",
    async (effect) => {
      const runOnce = async (crossings: Crossings) => {
        const runs = new Map<string, number>();
        const count =
          (value: Run): Run =>
          (input, context) => {
            runs.set(context.operationId, (runs.get(context.operationId) ?? 0) + 1);
            return value(input, context);
          };
        const hooks: Hooks = {
          effect,
          assemble: count(requestOf),
          extract: count(() => [{ op: "write", content: "x" }]),
        };
        const world = await runWorld(
          { ...WORLD, library: library(hooks), persona: personaOf(hooks) },
          crossings,
        );
        return { world, runs };
      };
      const golden = new Crossings();
      const { world } = await runOnce(golden);
      expect(world.turns.map(({ status }) => status)).toEqual(["completed", "completed"]);
      expect(golden.count).toBeGreaterThan(20);
      for (let point = 0; point < golden.count; point++) {
        const { world: crashed, runs } = await runOnce(new Crossings([point]));
        const where = `crash ${point}: ${golden.names[point >> 1]}`;
        const ends = effect === "once" ? ["completed", "failed"] : ["completed"];
        for (const turn of crashed.turns) {
          expect(ends, where).toContain(turn.status);
          if (turn.status === "failed") expect(turn.error?.code, where).toBe("CONTEXT_ASSEMBLY_FAILED");
        }
        if (effect === "once") expect(Math.max(...runs.values()), where).toBe(1);
        expect(
          crashed.client.turns.map(({ status }) => status),
          where,
        ).toEqual(crashed.turns.map(({ status }) => status));
      }
    },
  );
});
