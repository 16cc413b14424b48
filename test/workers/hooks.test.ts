/** Hooks on workerd: personas that name tasks for the context of a cycle and for the memories of a turn. */
import { describe, expect, test } from "vitest";
import type { ToolChoice } from "../../src/protocol/requests.ts";
import type { Principal } from "../../src/shared/principal.ts";
import type { ReplyScript } from "../support/provider-script.ts";
import { expectProblem, post } from "./http-client.ts";
import { createAgent, createConversation } from "./world.ts";

const AUTHOR: Principal = { subject: "ann", tenant: "test", roles: ["author"] };
const persona = (id: string, memory: object) =>
  post(
    "/api/libraries/hooked/personas",
    { id, identity: { systemPrompt: "Test.", modelProfileId: "test/scripted" }, memory },
    AUTHOR,
  );
const HOOKS = { contextAssembly: { task: "test/assemble" }, memoryExtraction: { task: "test/remember" } };

test("A36 A39 A40 TASKDEF-1 the request is the hook's, and the operations of the extraction are in the journal", async () => {
  expect(await persona("both", HOOKS)).toMatchObject({
    status: 201,
    body: { definition: { memory: HOOKS } },
  });
  const conversation = await createConversation(await createAgent("hooked/both"));
  const { play, turnId } = await conversation.play({ replies: [[{ text: "Yes." }]] });
  await conversation.ended(turnId);
  const [request] = await play.requests(1);
  expect(request?.body).toEqual({
    model: "scripted",
    stream: true,
    seed: 0,
    messages: [{ role: "user", content: play.content }],
  });
  await expect
    .poll(async () => (await conversation.journal()).slice(-2), { timeout: 10_000 })
    .toMatchObject([
      { type: "turn.finalized", data: { memoryExtractionStatus: "completed" } },
      { type: "memory_extraction.applied", data: { outcomes: [{ status: "applied" }] } },
    ]);
  const entries = await conversation.journal();
  const extracted = entries.find(({ type }) => type === "memory_extraction.completed");
  expect(extracted?.data).toEqual({ operations: [{ op: "write", content: "Yes.", type: "fact" }] });
  const turn = await conversation.turn(turnId);
  expect(turn.memoryExtractionRunId).toBe(extracted?.operationId);
  expect(turn.contextAssemblyRunId).toMatch(/^op_/);

  const { turnId: second } = await conversation.play({ replies: [[{ text: "Forget." }]] });
  await conversation.ended(second);
  await expect
    .poll(async () => (await conversation.turn(second)).issues, { timeout: 10_000 })
    .toEqual({ memoryExtractionFailed: true });
});

describe("TOOLCHOICE-1 HOOK-2 the tool choice of a message holds in the request of its hook", () => {
  const make = async (id: string, task: string) => {
    const body = {
      ...{ id, identity: { systemPrompt: "Test.", modelProfileId: "test/scripted" } },
      tools: { toolIds: ["test/double"] },
      memory: { contextAssembly: { task } },
    };
    expect((await post("/api/libraries/hooked/personas", body, AUTHOR)).status).toBe(201);
    return createConversation(await createAgent(`hooked/${id}`));
  };
  const replies: ReplyScript[] = [[{ call: "double", input: { n: 21 } }], [{ text: "42." }]];
  const named = { name: "double" };
  const forced = { type: "function", function: named };

  test.each<[string, ToolChoice | undefined, unknown[], boolean]>([
    ["a named tool", named, [forced, "auto"], true],
    ["any tool", "required", ["required", "auto"], true],
    ["no tool", "none", ["none", "none"], false],
    ["without a choice", undefined, [undefined, undefined], true],
  ])("%s", async (_, toolChoice, expected, isCalled) => {
    const conversation = await make(`chooses_${crypto.randomUUID().slice(0, 8)}`, "test/assemble_tools");
    const { play, turnId } = await conversation.play(
      { replies },
      toolChoice === undefined ? {} : { toolChoice },
    );
    const { status, moves } = await conversation.ended(turnId);
    expect(status).toBe("completed");
    const asked = await play.requests();
    expect(asked.map(({ body }) => body.tool_choice)).toEqual(expected);
    expect(moves.flatMap(({ toolResult }) => toolResult?.success ?? [])).toEqual([isCalled]);
  });

  test("a forced tool that the request does not offer fails the turn, and no model is called", async () => {
    const conversation = await make("chooses_nothing", "test/assemble");
    const { play, turnId } = await conversation.play({ replies }, { toolChoice: named });
    const { status, error } = await conversation.ended(turnId);
    expect(status).toBe("failed");
    expect(JSON.stringify(error)).toContain("not offered");
    expect(await play.requests()).toEqual([]);
  });
});

test("HOOKFORM-1 the designs' names are accepted, and name workflows", async () => {
  const designed = {
    contextAssemblyWorkflowId: "hookflows/assembly_works",
    memoryExtractionWorkflowId: "hookflows/extraction_works",
  };
  const { body } = await persona("designed", designed);
  expect(body.definition).toMatchObject({
    memory: {
      contextAssembly: { workflow: "hookflows/assembly_works" },
      memoryExtraction: { workflow: "hookflows/extraction_works" },
      recentTurnsLimit: 20,
    },
  });
});

test.each<[string, object, string]>([
  ["an unknown task", { contextAssembly: { task: "test/nobody" } }, "/memory/contextAssembly/task"],
  [
    "a task with a version",
    { memoryExtraction: { task: "test/remember@1" } },
    "/memory/memoryExtraction/task",
  ],
  [
    "an unknown workflow",
    { contextAssembly: { workflow: "test/assemble" } },
    "/memory/contextAssembly/workflow",
  ],
  [
    "both forms",
    { contextAssembly: { task: "test/assemble" }, contextAssemblyWorkflowId: "test/assemble" },
    "/memory/contextAssemblyWorkflowId",
  ],
])("a persona with %s is refused", async (_, memory, path) => {
  expectProblem(await persona("refused", memory), 422, "INVALID_INPUT", path);
});
