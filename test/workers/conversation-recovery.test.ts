/**
 * Turns on workerd survive a failing model, and the death of their actor in every phase. After a crash, the wake-up job
 * alone completes the turn.
 */

import { runInDurableObject } from "cloudflare:test";
import { exports } from "cloudflare:workers";
import { afterEach, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { OFFLINE_PROFILE } from "../../src/adapters/default-profile.ts";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import {
  MAX_HEARTBEAT_MS,
  MIN_HEARTBEAT_MS,
} from "../../src/agents/conversation/core/conversation-limits.ts";
import { resumePause } from "../../src/agents/conversation/core/isolation.ts";
import type { ConversationIdentity } from "../../src/agents/conversation/core/state.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { allowAll } from "../../src/policy/gate.ts";
import { VirtualClock } from "../../src/ports/node/virtual-clock.ts";
import { systemIds } from "../../src/ports/system.ts";
import { DurableKeyValue, DurableSqlDatabase } from "../../src/ports/workers/durable-storage.ts";
import type { TaskResultApi } from "../../src/protocol/executor-api.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import type { Script, StepScript } from "../support/provider-script.ts";
import { cancelledOperations, testLibrary } from "./library.ts";
import { openGate, Play, passGate } from "./provider.ts";
import {
  type Client,
  checkInvariants,
  crash,
  createAgent,
  createConversation,
  partialText,
  skipInvariants,
  type TestConversation,
} from "./world.ts";

/** `handy`: an agent with every test tool. `hasty`: an agent with a model time limit of a quarter of a second. */
let handy: string;
let hasty: string;

/** A turn whose actor has died, without further requests. Its alarm becomes due while models fail below. */
let forgotten: Scene;

beforeAll(async () => {
  handy = await createAgent("test/handy");
  hasty = await createAgent("test/hasty");
  forgotten = await scene(
    () => ({ replies: [{ attempts: [[{ gate: "hold" }], say("By myself.")] }] }),
    ({ play }) => play.reached("hold"),
  );
  skipInvariants(forgotten.conversation);
  await crash();
});

afterEach(checkInvariants);

const say = (text: string): StepScript[] => [{ text }];

const contents = async (conversation: TestConversation) =>
  (await conversation.messages()).map(({ content }) => content);

interface Scene {
  conversation: TestConversation;
  client: Client;
  play: Play;
  turnId: string;
}

/** A turn with a watcher, at the point of its interruption. */
async function scene(
  script: (key: string) => Omit<Script, "key">,
  phase: (scene: Scene) => Promise<unknown>,
): Promise<Scene> {
  const conversation = await createConversation(handy);
  const client = await conversation.connect();
  const started = await conversation.play(script);
  const set = { conversation, client, ...started };
  await phase(set);
  return set;
}

/** Kills the actor and fires its alarm, as the platform would in time. The client resumes with its last number. */
async function interrupt({ conversation, client }: Pick<Scene, "conversation" | "client">): Promise<Client> {
  await crash();
  await client.whenClosed();
  expect(await conversation.wake(), "a wake-up is armed").toBe(true);
  return conversation.connect({ before: client });
}

/** The conversation's door for results by name. */
function taskResultsOf({ stub }: TestConversation): TaskResultApi {
  // SAFETY: the class behind the binding implements this.
  return stub as unknown as TaskResultApi;
}

/** Kills the actor after its `count`th commit from now on: the commit stays, and its effects do not start. */
function dieAfterCommit({ stub }: TestConversation, key: string, count: number): Promise<void> {
  return runInDurableObject(stub, (_, { storage }) => {
    const transaction = storage.transactionSync.bind(storage);
    const newest = () => Number(storage.sql.exec("SELECT max(seq) AS seq FROM journal").one().seq);
    let last = newest();
    let commits = 0;
    storage.transactionSync = (body) => {
      if (commits === count) throw new Error("dead");
      const result = transaction(body);
      const seq = newest();
      if (seq > last) commits += 1;
      last = seq;
      if (commits < count) return result;
      void openGate(key, "dead");
      throw new Error("dead");
    };
  });
}

/** The final view of the turn in the client, item by item. */
const shown = ({ state }: Client, turnId: string) =>
  state.turns
    .filter(({ id }) => id === turnId)
    .flatMap(({ items }) => items)
    .map((item) => {
      if (item.type === "tool") return [item.operation.name, item.operation.state];
      return item.type === "message" ? item.message.content : item.text;
    });

describe("failing model calls", () => {
  test("A42 two refusals with 503, then success: three calls, one answer", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    const busy = { status: 503, message: "Busy." };
    const { play, turnId } = await conversation.play({
      replies: [{ attempts: [busy, busy, say("There.")] }],
    });
    await client.frame("turn.completed");
    expect((await play.requests()).map(({ attempt }) => attempt)).toEqual([0, 1, 2]);
    expect(client.framesOf("error").map(({ data }) => data)).toMatchObject([
      { code: "MODEL_FAILED", retriable: true },
      { code: "MODEL_FAILED", retriable: true },
    ]);
    expect(client.framesOf("message.reset")).toEqual([]);
    const turn = await conversation.turn(turnId);
    expect(turn.latencyMs, "backoff of 500 and 1000 ms").toBeGreaterThanOrEqual(1_500);
    expect((await conversation.messages()).map(({ content }) => content)).toEqual([play.content, "There."]);
  });

  test("A42 three refusals fail the turn with the provider's reason", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play({
      replies: [{ status: 500, message: "Out of order." }],
    });
    expect(await conversation.ended(turnId)).toMatchObject({
      status: "failed",
      error: { code: "MODEL_FAILED", message: expect.stringContaining("Out of order."), retriable: true },
    });
    expect(await play.requests()).toHaveLength(3);
  });

  test("A42 an auth error is not tried again: one call", async () => {
    const conversation = await createConversation(handy);
    const { play, turnId } = await conversation.play({ replies: [{ status: 401, message: "Wrong key." }] });
    expect(await conversation.ended(turnId)).toMatchObject({
      status: "failed",
      error: { code: "MODEL_FAILED", message: expect.stringContaining("auth"), retriable: false },
    });
    expect(await play.requests()).toHaveLength(1);
  });

  test("A43 a model that takes longer than its profile allows is a retryable failure", async () => {
    const conversation = await createConversation(hasty);
    const client = await conversation.connect();
    const late: StepScript[] = [{ gate: "never" }];
    const { play } = await conversation.play({
      replies: [{ attempts: [late, [{ text: "Half an ans" }, ...late], say("In time.")] }],
    });
    await client.frame("turn.completed");
    expect(await play.requests()).toHaveLength(3);
    expect(client.framesOf("error").map(({ data }) => data.message)).toEqual([
      expect.stringContaining("timeout"),
      expect.stringContaining("timeout"),
    ]);
    expect(client.framesOf("message.reset")).toHaveLength(1);
    expect((await conversation.messages())[1]?.content).toBe("In time.");
    await play.open("never");
  });

  test("A43 DEADLINE-1 a minute of silence on its own clock is a retryable failure; a moment less is not", async () => {
    const chain = await resolveChain(
      new Registry(new DeployedCode([testLibrary])),
      "test/plain",
      OFFLINE_PROFILE,
    );
    const play = new Play({ replies: [{ attempts: [[{ gate: "never" }], say("At last.")] }] });
    await runInDurableObject(exports.PortHost.getByName(crypto.randomUUID()), async (_, { storage }) => {
      const clock = new VirtualClock();
      const frames: Frame[] = [];
      let look = () => {};
      const shows = (type: Frame["type"]) =>
        new Promise<void>((resolve) => {
          look = () => void (frames.some((frame) => frame.type === type) && resolve());
          look();
        });
      const runtime = new ConversationRuntime({
        database: new DurableSqlDatabase(storage),
        keyValue: new DurableKeyValue(storage),
        clock,
        ids: systemIds,
        gateway: createModelGateway({
          secret: () => undefined,
          fetch: (url, init) => fetch(url, init),
          clock,
        }),
        adapters: adapterFor,
        executor: localExecutor(new DeployedCode([testLibrary]), clock),
        gate: allowAll,
        ...noMail,
        armWakeup: async () => undefined,
        publish(published) {
          frames.push(...published);
          look();
        },
      });
      const participants = [{ type: "user" as const, id: "ada" }];
      const where = { id: "conv_a43", tenant: "test", projectId: "default" };
      const agents: ConversationIdentity["agents"] = [{ id: "plain", chain }];
      runtime.create({ ...where, title: null, participants, agents, createdAt: clock.now() });
      const caller = { type: "user", userId: "ada" } as const;
      await runtime.accept({ type: "conversation.user.message", caller, data: { content: play.content } });
      await play.reached("never");
      await clock.advance(59_999);
      expect(frames.map(({ type }) => type)).toEqual(["turn.started", "message.user", "message.started"]);
      await clock.advance(1);
      await shows("error");
      expect(frames.at(-1)?.data).toMatchObject({
        message: expect.stringContaining("timeout"),
        retriable: true,
      });
      await clock.advance(500);
      await shows("turn.completed");
    });
    expect(await play.requests()).toHaveLength(2);
    await play.open("never");
  });

  test("A44 a stream that breaks off: the client sees a reset, and the final text has no doubled beginning", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    const { play, turnId } = await conversation.play({
      replies: [
        {
          attempts: [
            [{ text: "Hello wor" }, { gate: "break" }, { cut: true }],
            [{ text: "Hello " }, { gate: "go" }, { text: "world" }],
          ],
        },
      ],
    });
    await client.until((state) => partialText(state) === "Hello wor");
    await play.open("break");
    const reset = await client.frame("message.reset");
    expect(client.framesOf("message.started")).toMatchObject([{ messageId: reset.messageId }]);
    await client.until((state) => partialText(state) === "Hello ");
    await play.open("go");
    await client.frame("turn.completed");
    const completed = await client.frame("message.completed");
    expect(completed).toMatchObject({ messageId: reset.messageId, data: { content: "Hello world" } });
    expect((await conversation.messages()).map(({ content }) => content)).toEqual([
      play.content,
      "Hello world",
    ]);
    expect(client.state.messages.map(({ content }) => content)).toEqual([play.content, "Hello world"]);
    expect(await conversation.turn(turnId)).toMatchObject({ moves: [{ reasoning: "Hello world" }] });
  });
});

test("RUN-3 A72 an accepted turn finishes without another call: the platform's own alarm wakes it", async () => {
  const { conversation, play, turnId } = forgotten;
  await play.requests(2);
  expect(await conversation.ended(turnId)).toMatchObject({ moves: [{ reasoning: "By myself." }] });
  await play.open("hold");
});

test("BEAT-1 A72 the wake-up is early for a young turn, later for an old turn, and early again after a crash", async () => {
  const { conversation, play, turnId } = await scene(
    () => ({ replies: [[{ gate: "hold" }, { text: "At last." }]] }),
    ({ play: playing }) => playing.reached("hold"),
  );
  const wakeIn = () =>
    runInDurableObject(conversation.stub, (_, { storage }) => {
      const [job] = storage.sql
        .exec<{ time: number }>("SELECT time FROM cf_agents_jobs WHERE id = 'dramatis-wakeups'")
        .toArray();
      return (job?.time ?? Number.NaN) - Date.now();
    });
  expect(await wakeIn()).toBeLessThanOrEqual(MIN_HEARTBEAT_MS);
  onTestFinished(() => void vi.useRealTimers());
  for (const [age, wait] of [
    [4_000, 4_000],
    [60_000, MAX_HEARTBEAT_MS],
  ] as const) {
    const { createdAt } = await conversation.turn(turnId);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.parse(createdAt) + age });
    await conversation.wake();
    expect(await wakeIn()).toBe(wait);
  }
  await crash();
  expect((await conversation.turn(turnId)).status).toBe("active");
  await conversation.wake();
  expect(await wakeIn()).toBeLessThanOrEqual(MIN_HEARTBEAT_MS);
  vi.useRealTimers();
  await play.open("hold");
  await conversation.ended(turnId);
});

describe("A72 a crash at every phase of a turn", () => {
  test("A72 a crash before the first token: the call is repeated, and one turn ends, once", async () => {
    const set = await scene(
      () => ({ replies: [{ attempts: [[{ gate: "hold" }], say("An answer.")] }] }),
      ({ play }) => play.reached("hold"),
    );
    const { play, turnId, conversation } = set;
    const client = await interrupt(set);
    await client.frame("turn.finalized");
    expect(await play.requests()).toHaveLength(2);
    expect(await contents(conversation)).toEqual([play.content, "An answer."]);
    expect(shown(client, turnId)).toEqual([play.content, "An answer."]);
    await play.open("hold");
  });

  test("A72 in the middle of a text: a resumed client sees the text withdrawn, and then complete", async () => {
    const set = await scene(
      () => ({
        replies: [{ attempts: [[{ text: "Half an ans" }, { gate: "hold" }], say("A whole answer.")] }],
      }),
      ({ client }) => client.until((state) => partialText(state) === "Half an ans"),
    );
    const { play, turnId, conversation } = set;
    const client = await interrupt(set);
    await client.frame("turn.finalized");
    expect(client.framesOf("message.reset").map(({ data }) => data)).toEqual([{ reason: "interrupted" }]);
    expect(client.framesOf("snapshot")).toEqual([]);
    expect(await contents(conversation)).toEqual([play.content, "A whole answer."]);
    expect(shown(client, turnId)).toEqual([play.content, "A whole answer."]);
    expect((await conversation.turn(turnId)).moves).toHaveLength(1);
    await play.open("hold");
  });

  test.each([
    ["save", "idempotent"],
    ["look_up", "pure"],
  ])("A72 while a tool runs: %s is %s and runs again under the same operation id", async (tool) => {
    const set = await scene(
      (key) => ({
        replies: [[{ text: "Now. " }, { call: tool, input: { key, n: 1, gate: "hold" } }], say("Done.")],
      }),
      async ({ play, client }) => {
        await play.reached("hold");
        await client.frame("tool.requested");
      },
    );
    const { play, turnId, conversation } = set;
    const client = await interrupt(set);
    await play.reached("hold", 2);
    await play.open("hold");
    await client.frame("turn.finalized");
    const [first, second, ...more] = await play.runs();
    expect(second).toEqual(first);
    expect(more).toEqual([]);
    expect(await play.requests()).toHaveLength(2);
    const { moves } = await conversation.turn(turnId);
    expect(moves).toMatchObject([
      {
        reasoning: "Now. ",
        toolCall: { operationId: first?.operationId },
        toolResult: { success: true, result: { n: 1 } },
      },
      { reasoning: "Done." },
    ]);
    expect(shown(client, turnId)).toEqual([play.content, "Now. ", [tool, "completed"], "Done."]);
  });

  test("EFFECT-3 A72 while a pure tool runs for a reply that is not yet committed: no run has another operation id", async () => {
    const set = await scene(
      (key) => ({ replies: [[{ call: "look_up", input: { key, gate: "hold" } }], say("Done.")] }),
      ({ play }) => play.reached("hold"),
    );
    const { play, turnId, conversation } = set;
    const client = await interrupt(set);
    await play.reached("hold", 2);
    await play.open("hold");
    await client.frame("turn.finalized");
    expect(new Set((await play.runs()).map(({ operationId }) => operationId)).size).toBe(1);
    expect((await conversation.turn(turnId)).moves).toMatchObject([
      { toolResult: { success: true } },
      { reasoning: "Done." },
    ]);
    expect(shown(client, turnId)).toEqual([play.content, ["look_up", "completed"], "Done."]);
  });

  test("A72 RECOVER-2 while a `once` tool runs: its run outlives the actor, and its result is used", async () => {
    const set = await scene(
      (key) => ({ replies: [[{ call: "charge", input: { key, gate: "hold" } }], say("Charged.")] }),
      ({ play }) => play.reached("hold"),
    );
    const { play, turnId, conversation } = set;
    const client = await interrupt(set);
    expect((await conversation.journal()).at(-1)).toMatchObject({ type: "tool.interrupted" });
    await play.open("hold");
    await client.frame("turn.finalized");
    expect(await play.runs()).toHaveLength(1);
    const turn = await conversation.turn(turnId);
    expect(turn).toMatchObject({
      status: "completed",
      moves: [{ toolResult: { success: true, result: { tool: "charge" } } }, { reasoning: "Charged." }],
    });
    expect(turn.issues).toBeUndefined();
    expect(shown(client, turnId)).toEqual([play.content, ["charge", "completed"], "Charged."]);
  });

  test("A72 RECOVER-2 a result by name is accepted only for its operation and attempt, and only once", async () => {
    const set = await scene(
      (key) => ({ replies: [[{ call: "charge", input: { key, gate: "hold" } }], say("Charged.")] }),
      ({ play }) => play.reached("hold"),
    );
    const { play, turnId, conversation } = set;
    const client = await interrupt(set);
    const [{ operationId = "" } = {}] = await play.runs();
    const give = (members: object) =>
      taskResultsOf(conversation).handleTaskResult({
        operationId,
        attempt: 1,
        result: { tool_call_id: "call", success: true, result: "by name" },
        ...members,
      });
    const codeOf = async (members: object) => {
      const answer = await give(members);
      return answer.ok ? "ok" : answer.error.code;
    };
    expect(await codeOf({ attempt: 2 })).toBe("ok");
    expect(await codeOf({ operationId: `${operationId.slice(0, -1)}Z` })).toBe("NOT_FOUND");
    expect(await codeOf({ attempt: 0 })).toBe("INVALID_INPUT");
    expect(await codeOf({ result: { success: true } })).toBe("INVALID_INPUT");
    expect((await conversation.turn(turnId)).moves[0]?.toolResult).toBeUndefined();
    expect(await codeOf({})).toBe("ok");
    await client.frame("turn.finalized");
    expect(await codeOf({ result: { tool_call_id: "call", success: true, result: "again" } })).toBe("ok");
    await play.open("hold");
    expect((await conversation.turn(turnId)).moves[0]?.toolResult).toMatchObject({ result: "by name" });
    expect(client.framesOf("tool.completed")).toHaveLength(1);
  });

  test("OP-3 a result of a pure operation by name is ignored: its run may belong to another reply", async () => {
    const { play, turnId, conversation, client } = await scene(
      (key) => ({ replies: [[{ call: "look_up", input: { key, gate: "hold" } }], say("Found.")] }),
      async ({ play, client }) => {
        await play.reached("hold");
        await client.frame("tool.requested");
      },
    );
    const [{ operationId = "" } = {}] = await play.runs();
    const result = { tool_call_id: "call", success: true, result: "of another life" };
    expect(
      await taskResultsOf(conversation).handleTaskResult({ operationId, attempt: 1, result }),
    ).toMatchObject({
      ok: true,
    });
    await play.open("hold");
    await client.frame("turn.finalized");
    expect((await conversation.turn(turnId)).moves[0]?.toolResult?.result).toMatchObject({ tool: "look_up" });
  });

  test("EFFECT-5 BATCH-3 an operation with a result by name is cancelled at its executor, and the turn does not wait for it", async () => {
    const { play, turnId, conversation, client } = await scene(
      (key) => ({ replies: [[{ call: "patient", input: { key } }], say("Enough.")] }),
      ({ play }) => play.runs(1),
    );
    const [{ operationId = "" } = {}] = await play.runs();
    const result = { tool_call_id: "call", success: true, result: "by name" };
    expect(
      await taskResultsOf(conversation).handleTaskResult({ operationId, attempt: 1, result }),
    ).toMatchObject({
      ok: true,
    });
    await client.frame("turn.finalized");
    await vi.waitFor(() => expect(cancelledOperations).toContain(operationId), { timeout: 1_000 });
    expect((await conversation.turn(turnId)).moves[0]?.toolResult).toMatchObject({ result: "by name" });
    expect(await play.requests()).toHaveLength(2);
  });

  test("A72 RECOVER-2 while a `once` tool runs: without a result it never runs again, and the model learns that its outcome is unknown", async () => {
    const set = await scene(
      (key) => ({ replies: [[{ call: "charge", input: { key, gate: "hold" } }], say("I do not know.")] }),
      ({ play }) => play.reached("hold"),
    );
    const { play, turnId, conversation } = set;
    const client = await interrupt(set);
    await conversation.passLateResultTime();
    await client.frame("turn.finalized");
    expect(await play.runs()).toHaveLength(1);
    const error = {
      code: "EXECUTION_FAILED",
      retriable: false,
      message: expect.stringContaining("Outcome unknown"),
    };
    const end = {
      status: "completed",
      issues: { toolFailures: 1 },
      moves: [{ toolResult: { success: false, error } }, { reasoning: "I do not know." }],
    };
    expect(await conversation.turn(turnId)).toMatchObject(end);
    const [, second] = await play.requests(2);
    expect(second?.body.messages.at(-1)).toMatchObject({
      role: "tool",
      content: expect.stringContaining("Outcome unknown"),
    });
    expect(shown(client, turnId)).toEqual([play.content, ["charge", "failed"], "I do not know."]);
    await play.open("hold");
    expect(await conversation.turn(turnId), "a later result is ignored").toMatchObject(end);
  });

  test("A72 while three tools of one reply run: results are kept, and the other calls follow their effect", async () => {
    const set = await scene(
      (key) => ({
        replies: [
          [
            { call: "charge", input: { key, n: 1, gate: "charge" } },
            { call: "save", input: { key, n: 2, gate: "save" } },
            { call: "charge", input: { key, n: 3, gate: "second" } },
          ],
          say("So be it."),
        ],
      }),
      async ({ play, client }) => {
        await Promise.all(["charge", "save", "second"].map((gate) => play.reached(gate)));
        await play.open("charge");
        await client.frame("tool.completed");
      },
    );
    const { play, turnId, conversation } = set;
    const client = await interrupt(set);
    await play.reached("save", 2);
    await play.open("save");
    await play.open("second");
    await client.frame("turn.finalized");
    expect((await conversation.turn(turnId)).moves).toMatchObject([
      { toolResult: { success: true, result: { n: 1 } } },
      { toolResult: { success: true, result: { n: 2 } } },
      { toolResult: { success: true, result: { n: 3 } } },
      { reasoning: "So be it." },
    ]);
    const runs = (await play.runs()).map(({ tool, input }) => [tool, Reflect.get(Object(input), "n")]);
    expect(runs.slice(0, 3).sort()).toEqual([
      ["charge", 1],
      ["charge", 3],
      ["save", 2],
    ]);
    expect(runs.slice(3)).toEqual([["save", 2]]);
  });

  test.each([
    ["a message", 1],
    ["a reply that calls a `once` tool", 2],
    ["a tool's result", 3],
  ])("A72 between the commit of %s and its effects: they begin after the wake", async (_, commit) => {
    const quiet = vi.spyOn(console, "error").mockImplementation(() => undefined);
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    await client.frame("snapshot");
    const play = new Play((key) => ({ replies: [[{ call: "charge", input: { key } }], say("Done.")] }));
    await dieAfterCommit(conversation, play.key, commit);
    client.send({ type: "turn.start", id: "k", content: play.content });
    await passGate(play.key, "dead");
    const back = await interrupt({ conversation, client });
    quiet.mockRestore();
    // The state does not distinguish a call that was not made from a call with a lost answer.
    if (commit === 2) await conversation.passLateResultTime();
    const { turnId } = await back.frame("turn.finalized");
    const turn = await conversation.turn(turnId ?? "");
    expect(turn.moves).toMatchObject([{ toolCall: { name: "charge" } }, { reasoning: "Done." }]);
    expect((await play.runs()).length).toBeLessThanOrEqual(1);
    expect(turn.moves[0]?.toolResult?.success).toBe(commit !== 2);
    expect(await contents(conversation)).toEqual([play.content, "Done."]);
  });

  test("A72 during the backoff after a failed call: two calls in all", async () => {
    const later = { status: 503, headers: { "retry-after-ms": "1500" }, message: "Busy." };
    const set = await scene(
      () => ({ replies: [{ attempts: [later, say("There.")] }] }),
      ({ client }) => client.frame("error"),
    );
    const client = await interrupt(set);
    await client.frame("turn.finalized");
    expect(client.framesOf("message.reset")).toEqual([]);
    expect(await set.play.requests()).toHaveLength(2);
    expect(await contents(set.conversation)).toEqual([set.play.content, "There."]);
  });

  test("A72 after the end: no work runs again, and no wake-up remains", async () => {
    const { conversation, play, turnId } = await scene(
      (key) => ({ replies: [[{ call: "charge", input: { key } }], say("Charged.")] }),
      ({ client }) => client.frame("turn.finalized"),
    );
    await crash();
    expect(await conversation.wake(), "the heartbeat of the turn is still armed").toBe(true);
    expect(await conversation.turn(turnId)).toMatchObject({ status: "completed" });
    expect(await play.requests()).toHaveLength(2);
    expect(await play.runs()).toHaveLength(1);
    onTestFinished(() => void vi.useRealTimers());
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 60_000 });
    expect(await conversation.wake(), "it fires once more").toBe(true);
    await expect.poll(() => conversation.wake(), { message: "and then no longer" }).toBe(false);
  });
});

describe("survival", () => {
  test("A31 H4 LEDGER-3 moves: numbered from 1, with reasoning, call, result and raw reply, after a crash in mid-turn", async () => {
    const set = await scene(
      (key) => ({
        replies: [
          [
            { text: "First. " },
            { call: "save", input: { key, n: 1 } },
            { call: "charge", input: { key, n: 2 } },
          ],
          [{ text: "Then. " }, { call: "double", input: { n: 3 } }],
          [{ gate: "hold" }, { text: "Done." }],
        ],
      }),
      ({ play }) => play.reached("hold"),
    );
    const { play, turnId, conversation } = set;
    const before = await conversation.turn(turnId);
    expect(before.moves).toMatchObject([
      {
        sequence: 1,
        reasoning: "First. ",
        toolCall: { name: "save", toolId: "test/save", input: { n: 1 } },
        toolResult: { success: true, result: { tool: "save", n: 1 } },
        raw: {
          text: "First. ",
          toolCalls: [{ name: "save" }, { name: "charge" }],
          finishReason: "tool_calls",
        },
      },
      {
        sequence: 2,
        toolCall: { name: "charge" },
        toolResult: { success: true, result: { tool: "charge", n: 2 } },
      },
      {
        sequence: 3,
        reasoning: "Then. ",
        toolCall: { name: "double" },
        toolResult: { result: { doubled: 6 } },
      },
    ]);
    const client = await interrupt(set);
    const after = await conversation.turn(turnId);
    expect({ ...after, calls: [], spent: null }).toEqual({ ...before, calls: [], spent: null });
    // The request that the crash interrupted is charged.
    expect(after.spent).toMatchObject({ modelCalls: before.spent.modelCalls + 1, estimated: true });
    expect(after.spent.tokens - before.spent.tokens).toBeGreaterThan(4_096);
    await play.open("hold");
    await client.frame("turn.finalized");
    const { moves } = await conversation.turn(turnId);
    expect(moves.slice(0, 3)).toEqual(before.moves);
    expect(moves.slice(3)).toMatchObject([{ sequence: 4, reasoning: "Done." }]);
    expect(await play.runs()).toHaveLength(2);
  });

  test("Every active turn, each from its position", async () => {
    const conversation = await createConversation(handy);
    const client = await conversation.connect();
    const turns = await Promise.all(
      ["a", "b", "c"].map((name) =>
        conversation.play({
          replies: [{ attempts: [[{ text: `${name}?` }, { gate: "hold" }], say(`${name}!`)] }],
        }),
      ),
    );
    await Promise.all(turns.map(({ play }) => play.reached("hold")));
    const back = await interrupt({ conversation, client });
    await back.frame("turn.finalized", () => true, turns.length);
    const answers = await Promise.all(
      turns.map(async ({ turnId }) => (await conversation.turn(turnId)).moves[0]?.reasoning),
    );
    expect(answers).toEqual(["a!", "b!", "c!"]);
    expect(back.framesOf("message.reset")).toHaveLength(turns.length);
  });

  test("A stream that the crash cut off: asked for again with the same key, it has all of the turn and ends with it", async () => {
    const conversation = await createConversation(handy);
    const play = new Play({ replies: [{ attempts: [[{ text: "Half" }, { gate: "hold" }], say("Whole.")] }] });
    const body = JSON.stringify({ content: play.content, idempotencyKey: "cut" });
    const cut = await conversation.events("/turns", { method: "POST", body });
    await cut.upTo("message.delta");
    await crash();
    await expect(cut.rest()).rejects.toThrow();
    const again = await conversation.events("/turns", { method: "POST", body });
    const types = (await again.rest()).map(({ type }) => type).filter((type) => type !== "message.delta");
    expect(types).toEqual([
      "turn.started",
      "message.user",
      "message.started",
      "message.reset",
      "message.completed",
      "turn.completed",
    ]);
    const seen = cut.frames.filter(({ seq }) => seq !== undefined);
    expect(again.frames.slice(0, seen.length)).toEqual(seen);
    expect(await contents(conversation)).toEqual([play.content, "Whole."]);
    await play.open("hold");
  });

  test("ISOLATE-3 A turn continues and ends even if its actor dies repeatedly and early, with a longer pause each time", async () => {
    const { conversation, play, turnId } = await scene(
      () => ({ replies: [[{ text: "Ah" }, { gate: "hold" }, { text: "!" }]] }),
      ({ play }) => play.reached("hold"),
    );
    const lives = 5;
    for (let life = 2; life <= lives; life++) {
      await crash();
      const wokeAt = Date.now();
      expect(await conversation.wake()).toBe(true);
      await play.reached("hold", life);
      expect(Date.now() - wokeAt).toBeGreaterThanOrEqual(resumePause(life - 1) - 50);
    }
    expect(await conversation.turn(turnId)).toMatchObject({ status: "active" });
    await play.open("hold");
    expect(await conversation.ended(turnId)).toMatchObject({ status: "completed" });
    expect(await play.requests()).toHaveLength(lives);
    const next = await conversation.play({ replies: [say("Alive.")] });
    expect(await conversation.ended(next.turnId)).toMatchObject({ status: "completed" });
    await play.open("hold");
  });

  test("EVENTS-5 TURNROW-3 A turn with megabytes of results: each is stored once, and no other row remains after its end", async () => {
    const size = 900_000;
    const big: StepScript = { call: "big", input: { size } };
    const set = await scene(
      () => ({
        replies: [
          [big, big, big],
          [big, { call: "big", input: { size: 10 } }],
          [{ gate: "hold" }, { text: "Done." }],
        ],
      }),
      ({ play }) => play.reached("hold"),
    );
    const { play, turnId, conversation } = set;
    const texts = () =>
      runInDurableObject(conversation.stub, (_, { storage }) =>
        storage.sql
          .exec("SELECT count(*) AS count, sum(length(text)) AS size FROM cf_agents_long_text")
          .one(),
      );
    expect(await texts()).toEqual({ count: 4, size: 4 * (size + 2) });
    const client = await interrupt(set);
    await play.reached("hold", 2);
    const [before, again] = (await play.requests())
      .slice(2)
      .map(({ body }) => body.messages.filter(({ role }) => role === "tool"));
    expect(again, "a crash changes no form of a result").toEqual(before);
    expect(again?.map(({ content }) => (content?.length ?? 0) < size)).toEqual(Array(5).fill(true));
    expect(again?.at(-1)?.content).toHaveLength(12);
    await play.open("hold");
    await client.frame("turn.finalized");
    const { moves } = await conversation.turn(turnId);
    expect(moves.map(({ toolResult }) => String(toolResult?.result ?? "").length)).toEqual([
      size,
      size,
      size,
      size,
      10,
      0,
    ]);
    expect(await texts()).toEqual({ count: 4, size: 4 * (size + 2) });
  });

  test("LARGE-1 LARGE-2 Results that exceed the room of a turn are stored, and no call fails because of its size", async () => {
    const { conversation, play, turnId } = await scene(
      () => ({
        replies: [
          Array.from({ length: 12 }, () => ({ call: "big", input: { size: 1_000_000 } })),
          say("Too much."),
        ],
      }),
      ({ play }) => play.requests(1),
    );
    const { status, moves, issues } = await conversation.ended(turnId);
    expect(status).toBe("completed");
    expect(moves.filter(({ toolResult }) => toolResult?.success)).toHaveLength(12);
    expect(issues).toBeUndefined();
    const [, second] = await play.requests(2);
    const told = second?.body.messages.filter(
      ({ role, content }) => role === "tool" && content?.includes("stored_result"),
    );
    // Four calls run at a time, and later calls have the room that earlier calls left.
    expect(told?.length).toBeGreaterThanOrEqual(4);
    expect(JSON.stringify(second?.body.messages).length).toBeLessThan(9 * 1024 * 1024);
  });
});
