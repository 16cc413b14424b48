/** Tools that run in the background: pending results, further cycles, stops, and their state after a crash. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { turnEvents } from "../../src/agents/conversation/core/turn-events.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { eventToMessage } from "../../src/memory/session/events.ts";
import type { ModelProfile, ProviderId } from "../../src/model/profile.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import type { Json, JsonObject } from "../../src/shared/json.ts";
import { context, user } from "../support/contexts.ts";
import { type OpenRequest, SteeredConversation } from "../support/steered-model.ts";
import { checkByRules } from "../support/strict-apis.ts";

/** A library with `job`, which ends when the test ends it, and `look`, which the turn waits for. */
function works() {
  const running = new Map<
    string,
    { end(result: Json): void; fail(message: string): void; signal: AbortSignal }
  >();
  const started = new Set<() => void>();
  const job = defineTool({
    name: "job",
    description: "Works for long.",
    async: true,
    input: z.object({ name: z.string() }),
    execute: ({ name }, { signal }) =>
      new Promise<Json>((end, reject) => {
        running.set(name, { end, fail: (message) => reject(new Error(message)), signal });
        for (const note of started) note();
      }),
  });
  const look = defineTool({
    name: "look",
    description: "Looks.",
    effect: "idempotent",
    input: z.object({}),
    execute: () => "seen",
  });
  return {
    library: defineLibrary("works", { tools: [job, look] }),
    running,
    /** Resolves with a run of `job`, once it has started. */
    async run(name: string) {
      for (;;) {
        const found = running.get(name);
        if (found !== undefined) return found;
        await new Promise<void>((resolve) => started.add(resolve));
      }
    },
  };
}

const ends = (turnId: string) => (frame: Frame) =>
  (frame.type === "turn.completed" || frame.type === "turn.failed") && frame.turnId === turnId;
const waits = (turnId: string) => (frame: Frame) => frame.type === "turn.waiting" && frame.turnId === turnId;
const done = (name: string) => (frame: Frame) =>
  frame.type === "tool.completed" && JSON.stringify(frame.data.result).includes(name);
/** Returns roles and texts of a request, without the instructions. */
const messagesIn = ({ messages }: OpenRequest) =>
  messages.slice(1).map(({ role, content }) => `${role}: ${content ?? ""}`);
const typesOf = (room: SteeredConversation, turnId: string) =>
  room.frames.flatMap((frame) => (frame.turnId === turnId && frame.seq !== undefined ? [frame.type] : []));

/** Resolves when a turn has waited this often. */
const waited = (room: SteeredConversation, turnId: string, times: number) =>
  room.until(() => room.frames.filter(waits(turnId)).length >= times);

/** Begins a turn that calls `job` with these names, and answers that it works on it. */
async function beginJobs(room: SteeredConversation, ...names: string[]): Promise<string> {
  const id = await room.say("Do it");
  (await room.request()).call(...names.map((name): [string, JsonObject] => ["job", { name }]));
  (await room.request()).answer("I'm on it.");
  await room.until(waits(id));
  return id;
}

describe("a background operation", () => {
  test("ASYNC-1 A16 beside a foreground call: the model continues after the foreground call, and sees the other pending", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library);
    await room.say("Do it");
    (await room.request()).call(["job", { name: "a" }], ["look", {}]);
    const second = await room.request();
    const [pending, seen] = messagesIn(second).slice(-2);
    expect(JSON.parse(pending?.slice("tool: ".length) ?? "")).toEqual({
      status: "pending",
      operation_id: expect.stringMatching(/^op_/),
    });
    expect(seen).toBe('tool: "seen"');
    expect((await shop.run("a")).signal.aborted).toBe(false);
  });

  test("ASYNC-1 ASYNC-2 A17 A18 E13 B10 the agent answers at once, and again in the same turn when the result is there", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library);
    const id = await beginJobs(room, "a");
    expect(room.turn(id)).toMatchObject({ status: "active", phase: "waiting", answer: null });
    expect(room.untaken).toBe(0);
    (await shop.run("a")).end("42 found");
    const third = await room.request();
    expect(room.turn(id).phase).toBeUndefined();
    const said = messagesIn(third);
    expect(said.at(-2)).toBe("assistant: I'm on it.");
    expect(said.at(-1)).toMatch(
      /^system: The operation op_\w+ \("job"\), which ran in the background, has completed\./,
    );
    expect(said.at(-1)).toContain('\n"42 found"');
    third.answer("42.");
    await room.until(ends(id));
    const turn = room.turn(id);
    expect(turn).toMatchObject({ status: "completed", answer: "42." });
    expect(turn.agentMessageIds).toHaveLength(2);
    expect(
      turn.moves.map(({ toolCall, toolResult, reasoning }) => ({
        call: toolCall?.async,
        toolResult,
        reasoning,
      })),
    ).toEqual([
      { call: true, toolResult: { success: true, result: "42 found" } },
      { reasoning: "I'm on it." },
      { reasoning: "42." },
    ]);
    expect(typesOf(room, id)).toEqual([
      "turn.started",
      "message.user",
      "message.started",
      "message.completed",
      "tool.requested",
      "message.started",
      "message.completed",
      "turn.waiting",
      "tool.completed",
      "message.started",
      "message.completed",
      "turn.completed",
      "turn.finalized",
    ]);
    expect(room.runtime.state.turns, "no new turn").toBe(1);
  });

  test("ASYNC-4 an async result is in the next and all later requests, and each request extends the previous request", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library);
    const id = await beginJobs(room, "a", "b");
    (await shop.run("a")).end("result a");
    const third = await room.request();
    third.call(["look", {}]);
    const fourth = await room.request();
    expect(messagesIn(fourth).slice(0, messagesIn(third).length)).toEqual(messagesIn(third));
    fourth.answer("A is there.");
    await waited(room, id, 2);
    (await shop.run("b")).end("result b");
    const fifth = await room.request();
    expect(messagesIn(fifth).slice(0, messagesIn(fourth).length)).toEqual(messagesIn(fourth));
    fifth.answer("All done.");
    await room.until(ends(id));
    await room.say("And now?");
    const next = await room.request();
    expect(messagesIn(next).slice(0, messagesIn(fifth).length), "the next turn's history").toEqual(
      messagesIn(fifth),
    );
    expect(messagesIn(next).slice(-2)).toEqual(["assistant: All done.", "user: And now?"]);
  });

  test("ASYNC-3 A19 six completions at the same moment, during a cycle, are in one next cycle with all six, and the turn ends after the last", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library);
    const id = await beginJobs(room, "first", ..."123456");
    (await shop.run("first")).end("result first");
    const cycle = await room.request();
    for (const name of "123456") (await shop.run(name)).end(`result ${name}`);
    for (const name of "123456") await room.until(done(`result ${name}`));
    cycle.answer("The first is there.");
    const next = await room.request();
    const notices = messagesIn(next).filter((text) => text.includes("ran in the background"));
    expect(notices).toHaveLength(7);
    expect(messagesIn(next).slice(-6)).toEqual(notices.slice(1));
    expect(room.untaken).toBe(0);
    next.answer("All seven.");
    await room.until(ends(id));
    expect(room.turn(id)).toMatchObject({ status: "completed", answer: "All seven." });
    expect(room.frames.filter(waits(id)), "it never waited again").toHaveLength(1);
  });

  test("ASYNC-3 results that arrive together, while the turn waits, are in one cycle", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library);
    const id = await beginJobs(room, "a", "b");
    for (const name of "ab") await shop.run(name);
    for (const name of "ab") shop.running.get(name)?.end(`result ${name}`);
    const next = await room.request();
    expect(messagesIn(next).filter((text) => text.includes("ran in the background"))).toHaveLength(2);
    next.answer("Both.");
    await room.until(ends(id));
  });

  test("ASYNC-3 A22 a failure appears in a cycle of the same turn, and counts", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library);
    const id = await beginJobs(room, "a");
    (await shop.run("a")).fail("The oven is broken.");
    const next = await room.request();
    expect(messagesIn(next).at(-1)).toMatch(/has failed.*\n.*The oven is broken/s);
    next.answer("It did not work.");
    await room.until(ends(id));
    expect(room.turn(id)).toMatchObject({ status: "completed", issues: { toolFailures: 1 } });
  });

  test("STOP-1 a stop of the turn cancels it at its target, once; a stop of another turn does not", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library);
    const id = await beginJobs(room, "a");
    const run = await shop.run("a");
    const other = await room.say("Something else");
    await room.request();
    await room.stop(other);
    expect(run.signal.aborted).toBe(false);
    expect(room.turn(id)).toMatchObject({ status: "active", phase: "waiting" });
    await room.stop(id);
    await expect.poll(() => run.signal.aborted).toBe(true);
    expect(room.frames.filter(({ type }) => type === "tool.cancelled")).toHaveLength(1);
    expect(room.turn(id)).toMatchObject({ status: "failed", error: { code: "CANCELLED" } });
    await room.say("Try again");
    const said = messagesIn(await room.request());
    expect(said.find((text) => text.includes("Outcome unknown"))).toContain("ran in the background");
  });

  test("ORDER-3 A21 A34 a later turn gets a note on all running operations, whatever their inputs", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library);
    await beginJobs(room, `a${"x".repeat(900)}`, "b");
    await room.say("And?");
    const [note] = messagesIn(await room.request());
    expect(note?.match(/job\(/g)).toHaveLength(2);
    expect(note).toContain('job({"name":"b"})');
  });

  test("ASYNC-3 a new cycle sees the turns that ended before it", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library);
    await beginJobs(room, "a");
    const other = await room.say("My name is Ada.");
    (await room.request()).answer("Hello Ada.");
    await room.until(ends(other));
    (await shop.run("a")).end("found");
    expect(messagesIn(await room.request()).slice(0, 3)).toEqual([
      "user: My name is Ada.",
      "assistant: Hello Ada.",
      "user: Do it",
    ]);
  });

  test("ASYNC-5 queued: a waiting turn lets the next turn begin, and its own next cycle begins after that turn", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library, { order: "queued" });
    const id = await beginJobs(room, "a");
    const second = await room.say("Second");
    const third = await room.say("Third");
    const request = await room.request();
    expect(messagesIn(request).at(-1)).toBe("user: Second");
    (await shop.run("a")).end("found");
    await room.until(done("found"));
    expect(room.untaken).toBe(0);
    request.answer("About the second.");
    const cycle = await room.request();
    expect(messagesIn(cycle).at(-1)).toContain("found");
    expect(messagesIn(cycle).find((text) => text.includes('"Third"'))).toContain("Other turns");
    expect(room.untaken).toBe(0);
    cycle.answer("Found.");
    await room.until(ends(id));
    (await room.request()).answer("About the third.");
    await room.until(ends(third));
    expect(room.turn(second).status).toBe("completed");
  });

  test("ASYNC-5 ORDER-2 interrupt: a newer message does not stop a turn that only waits", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library, { order: "interrupt" });
    const id = await beginJobs(room, "a");
    const other = await room.say("Something else");
    const request = await room.request();
    expect(messagesIn(request)[0]).toContain("Running: job(");
    (await shop.run("a")).end("found");
    await room.until(done("found"));
    expect(room.untaken).toBe(0);
    request.answer("Here.");
    await room.until(ends(other));
    (await room.request()).answer("Found.");
    await room.until(ends(id));
    expect(room.turn(id)).toMatchObject({ status: "completed", answer: "Found." });
  });

  test("MOVES-1 OUTCOME-1 long results of background operations give way to newer results, and keep their line", async () => {
    const shop = works();
    const room = await SteeredConversation.create(shop.library, {}, { contextTokens: 4_000 });
    const id = await beginJobs(room, "a", "b");
    (await shop.run("a")).end("alpha ".repeat(20_000));
    const third = await room.request();
    expect(messagesIn(third).at(-1)?.length).toBeLessThan(30_000);
    third.answer("A.");
    await waited(room, id, 2);
    (await shop.run("b")).end("beta ".repeat(20_000));
    const fourth = await room.request();
    const [first, second] = messagesIn(fourth).filter((text) => text.includes("ran in the background"));
    expect(first).toMatch(/^system: The operation op_\w+ \("job"\).*\n"\(Left out: \d+ characters/);
    expect(second).toContain("beta beta");
    fourth.answer("B.");
    await room.until(ends(id));
  });
});

const APIS: [provider: ProviderId, path: string][] = [
  ["openai", "/chat/completions"],
  ["openai-responses", "/responses"],
  ["anthropic", "/messages"],
  ["gemini", ":streamGenerateContent"],
  ["workers-ai", "/chat/completions"],
];

test("ASYNC-4 RECORD-3 every request of such a turn, and the records of completed and stopped turns, are legal for all providers", async () => {
  const shop = works();
  const room = await SteeredConversation.create(shop.library);
  const first = await beginJobs(room, "a", "b");
  (await shop.run("a")).end({ found: 42 });
  (await room.request()).call(["look", {}], ["job", { name: "c" }]);
  await shop.run("c");
  (await room.request()).answer("More to do.");
  await waited(room, first, 2);
  (await shop.run("b")).fail("No.");
  (await room.request()).answer("One failed.");
  await waited(room, first, 3);
  (await shop.run("c")).end("done");
  (await room.request()).answer("Done.");
  await room.until(ends(first));
  const second = await beginJobs(room, "d");
  await room.stop(second);
  const messages = [first, second].flatMap((id) =>
    turnEvents(room.queries.requireTurn(room.runtime.state, id)).flatMap(
      (event) => eventToMessage(event) ?? [],
    ),
  );
  expect(messages.filter(({ content }) => content.includes("ran in the background"))).toHaveLength(4);
  const calls = messages.flatMap(({ role }, index) => (role === "assistant" ? [index] : []));
  expect(calls).toHaveLength(8);
  const tools = shop.library.tools.map(({ definition: { name, description, inputSchema } }) => {
    return { name, description, inputSchema };
  });
  for (const [provider, path] of APIS) {
    const profile: ModelProfile = { provider, modelId: "m", baseUrl: "http://model/v1" };
    const requests = [...calls.map((index) => messages.slice(0, index)), [...messages, user("Again?")]];
    for (const sent of requests) {
      const body = adapterFor(provider).buildRequest(profile, context({ messages: sent, tools }));
      // The rules are stricter than these APIs, which take system messages anywhere.
      const strict = JSON.parse(JSON.stringify(body), (key, value) =>
        key === "role" && (value === "system" || value === "developer") ? "user" : value,
      );
      expect(() => checkByRules(path, strict), `${provider}, ${sent.length}`).not.toThrow();
    }
  }
});

test("ASYNC-6 a turn that must answer with data waits for the result", async () => {
  const shop = works();
  const room = await SteeredConversation.create(shop.library);
  await room.runtime.accept({
    type: "conversation.user.message",
    caller: { type: "user", userId: "ada" },
    data: { content: "How many?", output: { name: "answer", schema: { type: "object" } } },
  });
  (await room.request()).call(["job", { name: "a" }]);
  (await shop.run("a")).end(42);
  expect(messagesIn(await room.request()).at(-1)).toBe("tool: 42");
});
