/**
 * Crash-transparent turns (H1, A72). The run without a crash is the reference. Then the same run is repeated once per
 * crossing of a port with a crash before it, and once with a crash after it took effect. The user's final view is the
 * same.
 */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { titledMessage } from "../../src/model/title-request.ts";
import type { ToolEffect, VersionChain } from "../../src/protocol/definitions.ts";
import {
  type ChatRequestBody,
  callPayloads,
  failingPayloads,
  repliesSoFar,
  textPayloads,
} from "../support/chat-replies.ts";
import { runWorld, type World, type WorldOptions } from "../support/crash-world.ts";
import { Crossings } from "../support/crossings.ts";

/** Runs of each tool, by operation id. */
type Runs = Map<string, { name: string; count: number }>;

function library(runs: Runs) {
  const tool = (name: string, effect: ToolEffect) =>
    defineTool({
      name,
      description: `A ${effect} tool.`,
      input: z.object({ n: z.number() }),
      effect,
      execute({ n }, { operationId }) {
        const run = runs.get(operationId) ?? { name, count: 0 };
        runs.set(operationId, { name, count: run.count + 1 });
        return { name, doubled: n * 2 };
      },
    });
  return defineLibrary("lib", {
    tools: [tool("look_up", "pure"), tool("save", "idempotent"), tool("charge", "once")],
  });
}

interface Scenario {
  title: string;
  /** The tools of each round. */
  rounds: [name: string, input: object][][];
  messages: string[];
  /** The first model breaks off in the middle of every reply. Another model answers. */
  fallback?: true;
  /** The answers that the model tries, one after the other. */
  tries?: string[];
}

/** The client's own tools. */
const CLIENT = {
  tools: [
    {
      name: "ask",
      description: "Asks the user.",
      inputSchema: { type: "object", properties: { n: { type: "number" } } },
    },
  ],
  run: (name: string, input: unknown) => JSON.parse(JSON.stringify({ name, input })),
};

const SCENARIOS: Scenario[] = [
  { title: "text only, two turns", rounds: [], messages: ["Hello", "And again"] },
  {
    title: "two pure tools in one reply",
    rounds: [
      [
        ["look_up", { n: 1 }],
        ["look_up", { n: 2 }],
      ],
    ],
    messages: ["Go"],
  },
  {
    title: "an idempotent and a once tool in one reply",
    rounds: [
      [
        ["save", { n: 1 }],
        ["charge", { n: 2 }],
      ],
    ],
    messages: ["Go"],
  },
  {
    title: "a pure round, then a once round",
    rounds: [[["look_up", { n: 1 }]], [["charge", { n: 2 }]]],
    messages: ["Go"],
  },
  {
    title: "FALLBACK-2 a model that breaks off in both calls, and the one that takes over",
    rounds: [[["save", { n: 1 }]]],
    messages: ["Go"],
    fallback: true,
  },
  {
    title: "OUTPUT-2 an answer that is withdrawn twice before it fits",
    rounds: [],
    messages: ["Go"],
    tries: ["Not JSON", '{"n": "one"}', '{"n": 1}'],
  },
  {
    title: "two tools of the client",
    rounds: [
      [
        ["ask", { n: 1 }],
        ["ask", { n: 2 }],
      ],
    ],
    messages: ["Go"],
  },
  {
    title: "a client's, a pure and a once tool in one reply",
    rounds: [
      [
        ["ask", { n: 1 }],
        ["look_up", { n: 2 }],
        ["charge", { n: 3 }],
      ],
    ],
    messages: ["Go"],
  },
];

const OUTPUT = { name: "answer", schema: { type: "object", properties: { n: { type: "number" } } } };

function withFallback(chain: VersionChain): VersionChain {
  const { definition } = chain.modelProfile;
  return {
    ...chain,
    fallbacks: [{ id: "second", version: 1, hash: "h", definition: { ...definition, modelId: "second" } }],
  };
}

function options(scenario: Scenario, runs: Runs): WorldOptions {
  return {
    library: library(runs),
    persona: {
      identity: { systemPrompt: "Test." },
      tools: { toolIds: ["lib/look_up", "lib/save", "lib/charge"] },
    },
    messages: scenario.messages,
    ...(scenario.fallback ? { spoil: withFallback } : {}),
    ...(scenario.tries === undefined ? {} : { output: OUTPUT }),
    client: CLIENT,
    provider(body) {
      if (scenario.fallback && body.model !== "second") return failingPayloads("Half of ", "invalid_api_key");
      if (scenario.tries !== undefined)
        return textPayloads(scenario.tries[repliesSoFar(body)] ?? "None left");
      const round = repliesSoFar(body);
      const calls = scenario.rounds[round];
      if (calls !== undefined) return callPayloads(`Round ${round + 1}. `, calls);
      const start = body.messages.findLastIndex(({ role }) => role === "user");
      const results = body.messages.slice(start).filter(({ role }) => role === "tool");
      const users = body.messages.filter(({ role }) => role === "user").length;
      return textPayloads(
        `Answer ${users} from ${results.map(({ content }) => content).join(" and ") || "nothing"}.`,
      );
    },
  };
}

/** The user's view, without ids and times. */
function transcript({ turns, client }: World) {
  return {
    turns: turns.map(({ status, input, output, moves, issues, calls }) => ({
      status,
      input,
      output,
      issues,
      calls: calls.map(({ model, outcome }) => [model, outcome?.errorCategory, outcome?.attempts]),
      moves: moves.map(({ sequence, reasoning, toolCall, toolResult }) => ({
        sequence,
        reasoning,
        tool: toolCall && { name: toolCall.name, input: toolCall.input },
        toolResult,
      })),
    })),
    messages: client.messages.map(({ role, content }) => ({ role, content })),
    shown: client.turns.map(({ status, items }) => ({
      status,
      items: items.map((item) => {
        if (item.type === "message") return item.message.content;
        if (item.type === "tool") return [item.operation.name, item.operation.state];
        return item.text;
      }),
    })),
  };
}

const isUnknown = (world: World) => JSON.stringify(transcript(world)).includes("Outcome unknown");

/** The transcript without unknown outcomes and the model's reactions to them. */
function apartFromUnknown(world: World): string {
  const { turns } = transcript(world);
  return JSON.stringify(
    turns.map(({ status, input, moves }) => ({
      status,
      input,
      moves: moves.map(({ sequence, tool, toolResult }) => ({
        sequence,
        tool,
        result: tool?.name === "charge" ? "any" : toolResult,
      })),
    })),
  );
}

function checkRuns(runs: Runs): void {
  for (const { name, count } of runs.values()) {
    if (name === "charge") expect(count, "runs of one once operation").toBe(1);
  }
  const charges = [...runs.values()].filter(({ name }) => name === "charge");
  expect(charges.length, "once operations").toBeLessThanOrEqual(1);
}

const errors = vi.spyOn(console, "error");

beforeEach(() => {
  errors.mockReset();
  errors.mockImplementation(() => undefined);
});

afterEach(() => {
  const isExpected = (error: unknown) =>
    error instanceof Error &&
    (["Crash", "Fault"].includes(error.name) ||
      error.message.startsWith("The caller of a batch took no report"));
  const unexpected = errors.mock.calls.filter(([error]) => !isExpected(error));
  expect(unexpected, "errors other than the crash itself, and the silence of the dead").toEqual([]);
});

describe.each(SCENARIOS)("H1 crash at every boundary: $title", (scenario) => {
  async function run(points: number[], faults: number[] = []) {
    const runs: Runs = new Map();
    const crossings = new Crossings(points, faults);
    const world = await runWorld(options(scenario, runs), crossings);
    return { world, runs, crossings };
  }

  test("RUN-1 COMMIT-1 one crash, before and after every crossing", async () => {
    const golden = await run([]);
    expect(golden.world.turns.map(({ status }) => status)).toEqual(scenario.messages.map(() => "completed"));
    const points = golden.crossings.count;
    expect(points).toBeGreaterThan(20);
    let unknown = 0;
    for (let point = 0; point < points; point++) {
      const { world, runs, crossings } = await run([point]);
      const at = `crash at point ${point} (${golden.crossings.names[Math.floor(point / 2)]})`;
      expect(world.lives, at).toBe(2);
      expect(crossings.count, at).toBeGreaterThan(point);
      checkRuns(runs);
      if (isUnknown(world)) {
        unknown += 1;
        expect(apartFromUnknown(world), at).toEqual(apartFromUnknown(golden.world));
      } else {
        expect(transcript(world), at).toEqual(transcript(golden.world));
      }
    }
    const hasOnce = scenario.rounds.flat().some(([name]) => name === "charge");
    if (hasOnce) expect(unknown, "runs with an unknown outcome").toBeGreaterThan(0);
    else expect(unknown).toBe(0);
    console.info(`${scenario.title}: ${points} crash points, ${unknown} of them with an unknown outcome`);
  });

  test("RUN-2 RUN-4 if a commit fails while the actor lives, it is repeated, and no tool runs again for it", async () => {
    const golden = await run([]);
    const commits = golden.crossings.names.flatMap((name, index) =>
      name === "sql.transaction" ? [index * 2] : [],
    );
    expect(commits.length).toBeGreaterThan(1);
    for (const commit of commits) {
      const { world, runs } = await run([], [commit]);
      expect(world.lives).toBe(1);
      expect(transcript(world), `fault at point ${commit}`).toEqual(transcript(golden.world));
      for (const { count } of runs.values()) expect(count).toBe(1);
    }
  });

  test("two and three crashes, a spread of pairs and triples", async () => {
    const golden = await run([]);
    const points = golden.crossings.count;
    for (let step = 0; step < 30; step++) {
      const first = (step * 7919) % points;
      const second = first + 1 + ((step * 104_729) % points);
      const third = second + 1 + ((step * 1_299_709) % points);
      const { world, runs } = await run(step % 2 === 0 ? [first, second] : [first, second, third]);
      checkRuns(runs);
      const at = `crashes at ${first}, ${second}, ${third}`;
      if (isUnknown(world)) expect(apartFromUnknown(world), at).toEqual(apartFromUnknown(golden.world));
      else expect(transcript(world), at).toEqual(transcript(golden.world));
    }
  });
});

test("SELFCOMPACT-4 EFFECT-2 H1 a crash at every boundary of a compaction: the turns are the same, and it completes once", async () => {
  const isOrder = ({ messages }: ChatRequestBody) =>
    messages.at(-1)?.content?.startsWith("This is an order of the platform") ?? false;
  // Without a space, it is one piece of the stream.
  const text = Array.from({ length: 300 }, () => "word").join("\n");
  const run = async (points: number[]) => {
    let orders = 0;
    const crossings = new Crossings(points);
    const world = await runWorld(
      {
        library: library(new Map()),
        persona: { identity: { systemPrompt: "Test." }, memory: { contextTokens: 3_000 } },
        messages: ["one", "two", "three", "four"],
        provider(body) {
          if (!isOrder(body)) return textPayloads(text);
          orders += 1;
          return textPayloads("Short.");
        },
      },
      crossings,
    );
    return { world, crossings, orders };
  };
  const golden = await run([]);
  expect(golden.world.compactions).toBe(1);
  expect(golden.orders).toBe(1);
  expect(golden.world.usage.calls).toBe(5);
  for (let point = 0; point < golden.crossings.count; point++) {
    const { world, orders } = await run([point]);
    const at = `crash at point ${point} (${golden.crossings.names[Math.floor(point / 2)]})`;
    expect(transcript(world), at).toEqual(transcript(golden.world));
    expect(world.compactions, at).toBe(1);
    expect(orders, at).toBeLessThanOrEqual(2);
  }
});

test("G24 TITLE-7 SELFCOMPACT-4 EFFECT-2 H1 a crash at every boundary of a title: the turn is the same, and the title is written once", async () => {
  const run = async (points: number[]) => {
    let orders = 0;
    const crossings = new Crossings(points);
    const world = await runWorld(
      {
        library: library(new Map()),
        persona: { identity: { systemPrompt: "Test." } },
        spoil: (chain) => ({ ...chain, titleProfile: chain.modelProfile }),
        messages: ["one"],
        provider({ messages }) {
          if (titledMessage(messages.at(-1)?.content ?? "") === undefined) return textPayloads("word");
          orders += 1;
          return textPayloads("Numbers");
        },
      },
      crossings,
    );
    return { world, crossings, orders };
  };
  const golden = await run([]);
  expect(golden.world.title).toBe("Numbers");
  expect([golden.orders, golden.world.usage.calls]).toEqual([1, 2]);
  for (let point = 0; point < golden.crossings.count; point++) {
    const { world, orders } = await run([point]);
    const at = `crash at point ${point} (${golden.crossings.names[Math.floor(point / 2)]})`;
    expect(transcript(world), at).toEqual(transcript(golden.world));
    expect(world.title, at).toBe("Numbers");
    expect(orders, at).toBeLessThanOrEqual(2);
  }
});
