/** The library `strategies`: its workflows, run over a scripted model behind the real adapter. */

import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createEmbeddingGateway } from "../../src/adapters/gateway/embeddings.ts";
import { adapterFor, createModelGateway, type ModelProfile, trustedHosts } from "../../src/adapters/index.ts";
import type { RunState } from "../../src/agents/coordinator/core/state.ts";
import { isOver } from "../../src/agents/coordinator/core/state.ts";
import { RunRuntime } from "../../src/agents/coordinator/run-runtime.ts";
import { defineLibrary, definePersona } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { pinWorkflow } from "../../src/library/registry/pin.ts";
import { Registry } from "../../src/library/registry/registry.ts";
import { resolveChain } from "../../src/library/registry/resolve.ts";
import { library } from "../../src/library/strategies/strategies.ts";
import { checkedRunInput } from "../../src/library/workflows/run-input.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import { systemClock, systemIds } from "../../src/ports/system.ts";
import { stemOf } from "../../src/protocol/ids.ts";
import type { JsonObject } from "../../src/shared/json.ts";
import { localExecutor, noHandles } from "../../src/testing/world/local-executor.ts";
import { quietRun } from "../../src/testing/world/no-mail.ts";
import { type OpenAIServer, startOpenAIServer, textReply } from "../support/openai-server.ts";

/** The instructions and the message of a request. */
interface Asked {
  system: string;
  user: string;
}

let server: OpenAIServer;
/** Answers the model's requests. */
let answer: (asked: Asked) => string;
const asked: Asked[] = [];

beforeAll(async () => {
  server = await startOpenAIServer({
    script(request) {
      // SAFETY: the adapter sends texts only.
      const messages = request.body.messages as { role: string; content: string }[];
      const textOf = (role: string) => messages.find((message) => message.role === role)?.content ?? "";
      const one = { system: textOf("system"), user: textOf("user") };
      asked.push(one);
      return textReply(answer(one));
    },
  });
});
afterAll(() => server.close());
beforeEach(() => void asked.splice(0));

/** Runs a workflow of the library to its end. */
async function run(id: string, given: JsonObject): Promise<RunState> {
  const defaultProfile: ModelProfile = { provider: "openai", modelId: "gpt-test", baseUrl: server.baseUrl };
  const code = new DeployedCode([library]);
  const workflow = await pinWorkflow(new Registry(code), `strategies/${id}`, { defaultProfile });
  const gatewayPorts = { secret: () => undefined, fetch, clock: systemClock, trustedHosts: trustedHosts() };
  const executor = localExecutor(code, systemClock, undefined, undefined, noHandles, {
    models: () => ({
      gateway: createModelGateway(gatewayPorts),
      adapters: adapterFor,
      embeddings: createEmbeddingGateway(gatewayPorts),
      defaultProfile,
    }),
  });
  const database = new NodeSqlDatabase();
  return new Promise((resolve, reject) => {
    const runtime = new RunRuntime(
      {
        ...quietRun,
        database,
        keyValue: new NodeKeyValue(database),
        clock: systemClock,
        executor,
        armWakeup: async () => undefined,
        ids: systemIds,
      },
      ({ state }) => {
        if (isOver(state)) resolve(state);
      },
    );
    runtime
      .start({
        id: `run_${systemIds.ulid()}`,
        tenant: "test",
        projectId: "default",
        stem: stemOf(systemIds.ulid()),
        workflow,
        input: checkedRunInput(workflow.definition, given),
        startedBy: "ada",
        request: "",
        createdAt: systemClock.now(),
      })
      .catch(reject);
  });
}

test("both sides of a debate argue in parallel, see the rounds before, and a judge decides", async () => {
  answer = ({ system, user }) => {
    if (system.includes("You judge"))
      return JSON.stringify({ winner: "against", reasoning: "Its points were not answered." });
    const side = /Your side: (\w+)/.exec(user)?.[1];
    const round = /Round 1/.test(user) ? 2 : 1;
    return `${side} ${round}`;
  };
  const argumentsOf = (round: number) =>
    ["for", "against"].map((side) => ({ side, text: `${side} ${round}` }));
  const { status, output, error } = await run("debate", { topic: "Is tea better than coffee?" });
  expect(error).toBeUndefined();
  expect({ status, output }).toEqual({
    status: "completed",
    output: {
      winner: "against",
      reasoning: "Its points were not answered.",
      rounds: [argumentsOf(1), argumentsOf(2)],
    },
  });
  expect(asked).toHaveLength(5);
  const [first, other, third] = asked;
  for (const { user } of [first, other] as Asked[]) expect(user).not.toContain("The debate so far");
  expect(third?.user).toMatch(/Round 1\s+\[for\] for 1\s+\[against\] against 1/);
  expect(third?.user).not.toContain("Round 2");
  expect(asked.at(-1)?.user).toMatch(
    /Is tea better than coffee\?[\s\S]*Round 1[\s\S]*Round 2\s+\[for\] for 2/,
  );
});

test.each([1, 5])("a debate has %d rounds on request", async (rounds) => {
  answer = ({ system }) =>
    system.includes("You judge") ? JSON.stringify({ winner: "draw", reasoning: "Both." }) : "Because.";
  const { output } = await run("debate", { topic: "Tea?", rounds });
  expect(output).toMatchObject({ winner: "draw", rounds: { length: rounds } });
  expect(asked).toHaveLength(2 * rounds + 1);
});

test("a debate takes no sixth round", async () => {
  await expect(run("debate", { topic: "Tea?", rounds: 6 })).rejects.toThrow(/\/rounds/);
});

test("a chain of verification answers its checks without the draft, and corrects it by them", async () => {
  answer = ({ system, user }) => {
    if (system.startsWith("You plan"))
      return JSON.stringify({ questions: ["Where was Ada born?", "When was Ada born?"] });
    if (system.startsWith("You correct")) return "London, 1815.";
    if (user === "Where was Ada born?") return "London.";
    return user === "When was Ada born?" ? "1815." : "Paris, 1815.";
  };
  const { output, error } = await run("chain_of_verification", { question: "Who was Ada?" });
  expect(error).toBeUndefined();
  expect(output).toEqual({
    answer: "London, 1815.",
    draft: "Paris, 1815.",
    checks: [
      { question: "Where was Ada born?", answer: "London." },
      { question: "When was Ada born?", answer: "1815." },
    ],
  });
  const [, plan, ...rest] = asked;
  expect(plan?.user).toMatch(/Paris, 1815\.\s+Write at most 4 questions/);
  for (const { user } of rest.slice(0, 2)) expect(user).not.toContain("Paris");
  expect(rest.at(-1)?.user).toMatch(/Paris, 1815[\s\S]*Q: Where was Ada born\?\s+A: London\./);
});

test("a chain of verification keeps a draft that claims no facts", async () => {
  answer = ({ system }) => (system.startsWith("You plan") ? JSON.stringify({ questions: [] }) : "Hello!");
  const { output } = await run("chain_of_verification", { question: "Say hello." });
  expect(output).toEqual({ answer: "Hello!", draft: "Hello!", checks: [] });
  expect(asked).toHaveLength(2);
});

/** Answers as the judge and the thinkers of a tree: a thought's score is the number in its text. */
function think({ system, user }: Asked): string {
  const steps = [...user.matchAll(/^\d+\. (.+)$/gm)].map(([, text = ""]) => text);
  if (system.startsWith("You judge"))
    return JSON.stringify({ score: Number(/\d+/.exec(steps.at(-1) ?? "")) });
  if (system.startsWith("You solve")) return `Solved by ${steps.join(" and ")}.`;
  const from = steps.at(-1)?.at(0) ?? "";
  return JSON.stringify({ thoughts: [`${from}a 3`, `${from}b 9`, `${from}c 5`, `${from}d 10`] });
}
const asking = (beginning: string) => asked.filter(({ system }) => system.startsWith(beginning));

test("a tree of thought continues the two best thoughts of each level, and answers by the best of the last", async () => {
  answer = think;
  const { output, error } = await run("tree_of_thought", {
    problem: "24 out of 4, 7, 8, 8",
    breadth: 3,
    depth: 2,
  });
  expect(error).toBeUndefined();
  expect(output).toEqual({
    answer: "Solved by b 9 and bb 9.",
    path: ["b 9", "bb 9"],
    scores: [9, 9],
  });
  const [first, ...next] = asking("You propose");
  expect(first?.user).not.toContain("The steps so far");
  expect(first?.user).not.toContain("They are the last ones");
  expect(next.map(({ user }) => /^1\. (.+)$/m.exec(user)?.[1]).sort()).toEqual(["b 9", "c 5"]);
  for (const { user } of next) expect(user).toContain("They are the last ones");
  // Three thoughts of one candidate, then three of each of two: a fourth is not scored.
  expect(asking("You judge")).toHaveLength(9);
  expect(asked).toHaveLength(13);
});

test.each([
  [1, 4],
  [4, 22],
])("a tree of thought of depth %d and breadth 2 makes %d calls", async (depth, calls) => {
  answer = think;
  const { output } = await run("tree_of_thought", { problem: "24?", breadth: 2, depth });
  expect(output).toMatchObject({ path: { length: depth }, scores: { length: depth } });
  expect(asked).toHaveLength(calls);
});

test("a tree of thought leaves out a thought without a score, and fails if no thought has one", async () => {
  answer = (one) =>
    one.system.startsWith("You judge") && one.user.includes("b 9") ? "I cannot say." : think(one);
  const { output } = await run("tree_of_thought", { problem: "24?", breadth: 3, depth: 1 });
  expect(output).toMatchObject({ path: ["c 5"], scores: [5] });
  answer = (one) => (one.system.startsWith("You judge") ? "I cannot say." : think(one));
  const { status, error } = await run("tree_of_thought", { problem: "24?" });
  expect({ status, error }).toMatchObject({ status: "failed", error: { code: "SYNC_UNSATISFIABLE" } });
});

test.each([{ breadth: 1 }, { breadth: 6 }, { depth: 0 }, { depth: 5 }])(
  "a tree of thought refuses %o",
  async (bounds) => {
    await expect(run("tree_of_thought", { problem: "24?", ...bounds })).rejects.toThrow(
      `/${Object.keys(bounds)[0]}`,
    );
  },
);

/** Answers the calls of a research with three sub-questions. The judge returns these verdicts. */
function investigate({ system, user }: Asked, verdicts: object[]): string {
  if (system.startsWith("You plan"))
    return JSON.stringify({ questions: ["How far?", "How big?", "How old?"] });
  if (system.startsWith("You judge")) return JSON.stringify({ verdicts });
  if (system.startsWith("You answer a question by")) return "It is far [1].";
  return JSON.stringify({ finding: `${user} So.`, basis: `A book on "${user}"` });
}
const verdictOf = (number: number, verdict: string) => ({ number, verdict, reason: `Because of ${number}.` });
const findingOf = (question: string) => ({
  question,
  finding: `${question} So.`,
  basis: `A book on "${question}"`,
});

test("a research answers sub-questions apart, drops and marks findings, and answers by the others", async () => {
  answer = (one) => investigate(one, [verdictOf(3, "keep"), verdictOf(1, "keep"), verdictOf(2, "drop")]);
  const { output, error } = await run("research", { question: "What is the moon?" });
  expect(error).toBeUndefined();
  expect(output).toEqual({
    answer: "It is far [1].",
    findings: [
      { ...findingOf("How far?"), weak: false },
      { ...findingOf("How old?"), weak: false },
    ],
    dropped: [{ ...findingOf("How big?"), reason: "Because of 2." }],
  });
  expect(asked).toHaveLength(6);
  for (const { user } of asking("You answer one question")) expect(user).not.toContain("moon");
  expect(asking("You judge")[0]?.user).toMatch(/\[1\] How far\?[\s\S]*Rests on: A book on "How far\?"/);
  const synthesis = asked.at(-1)?.user;
  expect(synthesis).toMatch(/What is the moon\?[\s\S]*\[1\] How far\?[\s\S]*\[2\] How old\?/);
  expect(synthesis).not.toContain("How big?");
});

test("a research marks findings that are weak, or that the judge has passed over", async () => {
  answer = (one) => investigate(one, [verdictOf(1, "weak"), verdictOf(2, "keep"), verdictOf(9, "drop")]);
  const { output } = await run("research", { question: "What is the moon?" });
  expect(output).toMatchObject({ findings: [{ weak: true }, { weak: false }, { weak: true }], dropped: [] });
  expect(asked.at(-1)?.user).toMatch(/\[1\] \(weak\) How far\?[\s\S]*\[2\] How big\?/);
});

test("a research has the requested number of sub-questions, and leaves out failed calls", async () => {
  answer = (one) => (one.user === "How far?" ? "Far." : investigate(one, [verdictOf(1, "keep")]));
  const { output, error } = await run("research", { question: "What is the moon?", angles: 2 });
  expect(error).toBeUndefined();
  expect(output).toMatchObject({ findings: [findingOf("How big?")] });
  expect(asked[0]?.user).toContain("at most 2 sub-questions");
  expect(JSON.stringify(asked)).not.toContain("How old?");
});

test("a research without confirmed findings reports it", async () => {
  answer = (one) =>
    investigate(
      one,
      [1, 2, 3].map((number) => verdictOf(number, "drop")),
    );
  const { output } = await run("research", { question: "What is the moon?" });
  expect(output).toMatchObject({ findings: [], dropped: { length: 3 } });
  expect(asked.at(-1)?.user).toContain("None has held.");
});

test.each([0, 9])("a research refuses %d angles", async (angles) => {
  await expect(run("research", { question: "Moon?", angles })).rejects.toThrow("/angles");
});

test("a persona names the strategies as tools, with the input of their workflows", async () => {
  const toolIds = ["debate", "chain_of_verification", "tree_of_thought", "research"].map(
    (id) => `strategies/${id}`,
  );
  const guide = definePersona("guide", { identity: { systemPrompt: "You weigh." }, tools: { toolIds } });
  const code = new DeployedCode([library, defineLibrary("my", { personas: [guide] })]);
  const { tools } = await resolveChain(new Registry(code), "my/guide", {
    provider: "offline",
    modelId: "default",
  });
  expect(tools.map(({ definition }) => definition)).toMatchObject([
    {
      name: "debate",
      effect: "idempotent",
      target: { workflow: "strategies/debate@1" },
      inputSchema: { required: ["topic"] },
    },
    { name: "chain_of_verification", inputSchema: { required: ["question"] } },
    { name: "tree_of_thought", effect: "idempotent", inputSchema: { required: ["problem"] } },
    { name: "research", effect: "idempotent", inputSchema: { required: ["question"] } },
  ]);
});
