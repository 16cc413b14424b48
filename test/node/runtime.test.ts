/** A conversation with faulty surroundings: gateways of an application. */

import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import type { MetricsSink, RequestMetrics } from "../../src/adapters/resilience/telemetry.ts";
import {
  MAX_CALLS_PER_REPLY,
  MAX_SHOWN_LENGTH,
} from "../../src/agents/conversation/core/conversation-limits.ts";
import { effectsOf } from "../../src/agents/conversation/core/effects.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import type { ModelGateway } from "../../src/model/gateway.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import { allowAll, type Gate } from "../../src/policy/gate.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import type { VersionChain } from "../../src/protocol/definitions.ts";
import { defined } from "../../src/shared/defined.ts";
import { localExecutor } from "../../src/testing/world/local-executor.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { callPayloads, repliesSoFar, textPayloads } from "../support/chat-replies.ts";
import { claudeReply } from "../support/claude-reply.ts";
import { runWorld } from "../support/crash-world.ts";
import { Crossings } from "../support/crossings.ts";
import { errorReply, startOpenAIServer } from "../support/openai-server.ts";
import { messageOfAda, recordOf } from "../support/records.ts";
import { Stage } from "../support/releases/stage.ts";

const errors = vi.spyOn(console, "error");

beforeEach(() => {
  errors.mockReset();
  errors.mockImplementation(() => undefined);
});

afterEach(() => errors.mockReset());

function run(gateway: ModelGateway, messages: string[]) {
  const options = {
    library: defineLibrary("empty", {}),
    persona: { identity: { systemPrompt: "Test." } },
    provider: () => textPayloads("unused"),
    gateway,
    messages,
  };
  return runWorld(options, new Crossings());
}

test("RUN-4 a reply too large to be stored fails its turn permanently, and the conversation continues", async () => {
  let calls = 0;
  const { turns, client } = await run(
    {
      async *stream(): AsyncGenerator<ModelDelta> {
        calls += 1;
        yield { type: "text", text: calls === 1 ? "x".repeat(33 * 1024 * 1024) : "Fine." };
        yield { type: "usage", usage: { inputTokens: 5, outputTokens: 6 } };
        yield { type: "finish", reason: "stop" };
      },
    },
    ["Tell me everything", "Shorter, please"],
  );
  expect(turns.map(({ status, error }) => [status, error?.code])).toEqual([
    ["failed", "TOO_LARGE"],
    ["completed", undefined],
  ]);
  // The third summarises the history, which the first turn has filled.
  expect(calls).toBe(3);
  expect(turns[0]).toMatchObject({
    usage: { inputTokens: 5, outputTokens: 6 },
    calls: [{ outcome: { ok: false } }],
  });
  const [, shown] = client.messages;
  expect(shown).toMatchObject({ content: "x".repeat(MAX_SHOWN_LENGTH), stopped: true });
  expect(client.messages.filter((message) => message !== shown).map(({ content }) => content)).toEqual([
    "Tell me everything",
    "Shorter, please",
    "Fine.",
  ]);
});

test("EFFECT-2 a running effect is not started again; a new life starts the lost effect", async () => {
  const stage = new Stage();
  const { runtime } = stage.begin();
  const profile = { provider: "openai", modelId: "scripted", baseUrl: "http://provider/v1" } as const;
  const persona = { identity: { systemPrompt: "Test." } };
  await runtime.create(
    recordOf(await resolveChain(new Registry(stage.code), persona, profile), {
      createdAt: stage.clock.now(),
    }),
  );
  const script = { key: "k", replies: [[{ gate: "hold" }]] };
  const caller = { type: "user", userId: "ada" } as const;
  await runtime.accept({
    type: "conversation.user.message",
    caller,
    data: { content: JSON.stringify(script) },
  });
  for (let beat = 0; beat < 3; beat++) runtime.reconcile();
  await stage.until(() => stage.asked > 0);
  for (let beat = 0; beat < 3; beat++) runtime.reconcile();
  await setImmediate();
  expect(stage.asked).toBe(1);
  await stage.begin().runtime.wake();
  await stage.until(() => stage.asked === 2);
});

test("EFFECT-6 RUN-3 a turn that waits for another after crashes starts when the other has an outcome", async () => {
  const stage = new Stage();
  const { runtime } = stage.begin();
  const profile = { provider: "openai", modelId: "scripted", baseUrl: "http://provider/v1" } as const;
  const persona = { identity: { systemPrompt: "Test." } };
  await runtime.create(
    recordOf(await resolveChain(new Registry(stage.code), persona, profile), {
      createdAt: stage.clock.now(),
    }),
  );
  const held = [{ gate: "hold" }];
  const first = { key: "first", replies: [{ attempts: [held, held, held, held, [{ text: "Done." }]] }] };
  for (const script of [first, { key: "second", replies: [held] }])
    await runtime.accept(messageOfAda(JSON.stringify(script)));
  await stage.until(() => stage.asked === 2);
  for (let crash = 1; crash <= 3; crash++) {
    await stage.begin().runtime.wake();
    await stage.until(() => stage.asked === 2 + 2 * crash);
  }
  const { runtime: last } = stage.begin();
  await last.wake();
  expect(effectsOf(last.state).map((effect) => "turn" in effect && effect.turn.n)).toEqual([1]);
  await stage.until(() => last.state.active.size === 1);
  await stage.until(() => stage.asked === 10);
});

test("A43 a gateway that never answers and ignores its abort holds up no turn: three attempts, then it fails", async () => {
  let calls = 0;
  const { turns } = await run(
    {
      stream() {
        calls += 1;
        const never = new Promise<IteratorResult<ModelDelta>>(() => undefined);
        return { [Symbol.asyncIterator]: () => ({ next: () => never }) };
      },
    },
    ["Hello?"],
  );
  expect(calls).toBe(3);
  expect(turns[0]).toMatchObject({ status: "failed", error: { code: "MODEL_FAILED", retriable: true } });
  expect(turns[0]?.error?.message).toContain("timeout");
  expect(turns[0]?.latencyMs).toBe(3 * 120_000 + 500 + 1_000);
});

/** A conversation that reaches its models over HTTP. */
async function overHttp(chain: VersionChain, metrics?: MetricsSink) {
  const database = new NodeSqlDatabase();
  let end = () => {};
  const runtime = new ConversationRuntime({
    database,
    keyValue: new NodeKeyValue(database),
    clock: systemClock,
    ids: systemIds,
    gateway: createModelGateway({ secret: () => undefined, fetch, clock: systemClock }),
    adapters: adapterFor,
    executor: localExecutor(new DeployedCode([]), systemClock),
    gate: allowAll,
    ...noMail,
    ...defined({ metrics }),
    armWakeup: async () => undefined,
    publish: (frames) => {
      if (frames.some(({ type }) => type === "turn.completed")) end();
    },
  });
  await runtime.create(recordOf(chain));
  const queries = new ConversationQueries(runtime.store);
  return {
    /** Returns the turn of a message when it is completed. */
    async ask(content: string) {
      const ended = new Promise<void>((resolve) => {
        end = resolve;
      });
      const { turnId } = await runtime.accept(messageOfAda(content));
      await ended;
      return queries.turn(runtime.state, turnId);
    },
  };
}

test("PAUSE-1 over HTTP: Anthropic gets its paused part back unchanged, and the turn has the whole answer", async () => {
  const search = { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "x" } };
  const found = { type: "web_search_tool_result", tool_use_id: "srv_1", content: [] };
  const replies = [
    claudeReply("pause_turn", { type: "text", text: "I search. " }, search),
    claudeReply("end_turn", found, { type: "text", text: "Found." }),
    claudeReply("end_turn", { type: "text", text: "Bye." }),
  ];
  await using server = await startOpenAIServer({
    script: ({ number }) => replies[number] ?? errorReply(500, { message: "No more." }),
  });
  const profile = { provider: "anthropic", modelId: "claude-test", baseUrl: server.baseUrl } as const;
  const persona = { identity: { systemPrompt: "Test." } };
  const { ask } = await overHttp(await resolveChain(new Registry(new DeployedCode([])), persona, profile));
  const turn = await ask("Search.");
  expect(turn.moves).toMatchObject([{ raw: { text: "I search. Found.", finishReason: "stop" } }]);
  expect(turn.calls).toMatchObject([{ usage: { outputTokens: 9 } }, { usage: { outputTokens: 9 } }]);
  const [first, second] = server.requests.map(({ body }) => body.messages);
  expect(second).toEqual([
    ...(Array.isArray(first) ? first : []),
    { role: "assistant", content: [{ type: "text", text: "I search. " }, search] },
  ]);
  await ask("Bye.");
  expect(server.requests[2]?.body.messages).toMatchObject([
    { role: "user" },
    { role: "assistant", content: [{ text: "I search. " }, search, found, { text: "Found." }] },
    { role: "user" },
  ]);
});

test("FALLBACK-1 CALLS-1 METRIC-1 over HTTP: if one server refuses the key, the other server answers, in its own format", async () => {
  await using refusing = await startOpenAIServer({
    script: () => errorReply(401, { message: "No such key." }),
  });
  await using answering = await startOpenAIServer({
    script: ({ number }) => ({
      kind: "stream",
      steps: [
        { text: `Answer ${number + 1}.` },
        { usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 } },
        { finish: "stop" },
      ],
    }),
  });
  const profile = (baseUrl: string) =>
    ({ provider: "openai", modelId: "m", baseUrl, costPer1kInput: 1 }) as const;
  const persona = { identity: { systemPrompt: "Test." } };
  const chain = await resolveChain(new Registry(new DeployedCode([])), persona, profile(refusing.baseUrl));
  const measured: RequestMetrics[] = [];
  const second = { id: "second", version: 1, hash: "h", definition: profile(answering.baseUrl) };
  const { ask } = await overHttp({ ...chain, fallbacks: [second] }, (metrics) => {
    measured.push(metrics);
    throw new Error("The sink is broken.");
  });
  for (const answer of ["Answer 1.", "Answer 2."]) {
    const turn = await ask("Hi");
    expect(turn.moves.map(({ reasoning }) => reasoning)).toEqual([answer]);
    expect(
      turn.calls.map(({ outcome, usage }) => [
        outcome?.errorCategory,
        outcome?.attempts,
        outcome?.status,
        usage,
      ]),
    ).toEqual([
      ["auth", 1, 401, undefined],
      ["none", 1, 200, { inputTokens: 10, outputTokens: 4, totalTokens: 14 }],
    ]);
    expect(measured.splice(0)).toEqual(
      turn.calls.map(({ id, outcome, usage, cost }) => ({
        span: "dramatis.chat",
        outcome: {
          ...outcome,
          startedAt: expect.any(Number),
          finishedAt: expect.any(Number),
        },
        info: expect.objectContaining({ requestId: id, correlationId: `conv_test:${turn.id}` }),
        ...(usage === undefined ? {} : { usage, cost }),
      })),
    );
  }
  expect(refusing.requests, "each turn begins with the first").toHaveLength(2);
});

describe("requests that a model may make", () => {
  const strict = defineTool({
    name: "strict",
    description: "Takes a word.",
    // A pattern that JSON Schema validators with Unicode patterns refuse to compile.
    input: z.object({ word: z.string().regex(/^[\w-.]+$/) }),
    effect: "pure",
    execute: ({ word }) => word,
  });

  const write = defineTool({
    name: "write",
    description: "Writes.",
    input: z.object({}),
    effect: "once",
    execute: () => null,
  });

  async function ask(calls: [name: string, input: object][], gate?: Gate) {
    const { turns, client } = await runWorld(
      {
        library: defineLibrary("lib", { tools: [strict, write] }),
        persona: { identity: { systemPrompt: "Test." }, tools: { toolIds: ["lib/strict", "lib/write"] } },
        provider: (body) => (repliesSoFar(body) === 0 ? callPayloads("", calls) : textPayloads("Done.")),
        messages: ["Go"],
        ...(gate === undefined ? {} : { gate }),
      },
      new Crossings(),
    );
    return { turn: turns[0], client };
  }

  test("a gate that throws denies the call, and the model is called once more, not forever", async () => {
    const { turn } = await ask([["strict", { word: "a" }]], () => {
      throw new Error("no policy server");
    });
    expect(turn?.status).toBe("completed");
    expect(turn?.moves[0]?.toolResult?.error?.code).toBe("PERMISSION_DENIED");
  });

  test("CHECK-1 the gate decides once for each call, pure or not", async () => {
    const asked: unknown[] = [];
    const gate: Gate = (_tool, input) => {
      asked.push(input);
      return "allow";
    };
    const { turn } = await ask(
      [
        ["strict", { word: "a" }],
        ["strict", { word: "a" }],
        ["write", {}],
      ],
      gate,
    );
    expect(turn?.status).toBe("completed");
    expect(asked).toEqual([{ word: "a" }, { word: "a" }, {}]);
    asked.length = 0;
    await ask([["strict", { word: "b" }]], gate);
    expect(asked, "a reply with calls that run before its commit").toEqual([{ word: "b" }]);
  });

  test("a schema that the planner cannot read leaves the check to the tool", async () => {
    const { turn } = await ask([
      ["strict", { word: "fine" }],
      ["strict", { word: "not fine" }],
    ]);
    expect(turn?.status).toBe("completed");
    expect(turn?.moves[0]?.toolResult).toEqual({ success: true, result: "fine" });
    expect(turn?.moves[1]?.toolResult?.error?.code).toBe("INVALID_INPUT");
  });

  test("arguments nested without end are INVALID_INPUT", async () => {
    let deep: object = {};
    for (let level = 0; level < 500; level++) deep = { deep };
    const { turn } = await ask([["strict", deep]]);
    expect(turn?.status).toBe("completed");
    expect(turn?.moves[0]?.toolResult?.error?.code).toBe("INVALID_INPUT");
  });

  test("thousands of calls in one reply: the first are kept, and the answer is in the transcript", async () => {
    const { turn, client } = await ask(Array.from({ length: 4_000 }, () => ["strict", { word: "a" }]));
    expect(turn?.moves).toHaveLength(MAX_CALLS_PER_REPLY + 1);
    expect(client.messages.map(({ content }) => content)).toEqual(["Go", "Done."]);
  });
});

test("RUN-4 a reply that makes planning throw fails its turn after one call, and the error hides the defect", async () => {
  let calls = 0;
  let isBroken = false;
  const { turns } = await runWorld(
    {
      library: defineLibrary("empty", {}),
      persona: { identity: { systemPrompt: "Test." } },
      provider: () => {
        calls += 1;
        isBroken = true;
        return callPayloads("", [["unknown", {}]]);
      },
      messages: ["Hello?"],
      spoil: (chain) => ({
        ...chain,
        get tools() {
          if (isBroken) throw new Error("the defect");
          return chain.tools;
        },
      }),
    },
    new Crossings(),
  );
  expect(calls).toBe(1);
  expect(turns[0]).toMatchObject({ status: "failed", error: { code: "INTERNAL_ERROR" } });
  expect(JSON.stringify(turns)).not.toContain("the defect");
});

test("PLAN-3 an exception of a gateway is an internal error: the turn fails at once, and the error hides the cause", async () => {
  const { turns } = await run(
    {
      // biome-ignore lint/correctness/useYield: it fails before it has anything to say.
      async *stream(): AsyncGenerator<ModelDelta> {
        throw new Error("the password is swordfish");
      },
    },
    ["Hello?"],
  );
  expect(turns[0]?.status).toBe("failed");
  expect(JSON.stringify(turns)).not.toContain("swordfish");
});
