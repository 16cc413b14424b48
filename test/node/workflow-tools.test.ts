/** Tools over workflows: in code, posted, pinned, and kept from sub-agents. */
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { runMember, userOf } from "../../src/agents/conversation/core/called-workflow.ts";
import { hookRunRefusal, runRefusal } from "../../src/agents/conversation/core/planning/call-guards.ts";
import type { CallOrigin } from "../../src/agents/conversation/core/state.ts";
import { checkedTool } from "../../src/library/authoring/authoring.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { defineWorkflow, node } from "../../src/library/define/define-workflow.ts";
import { networkProblem } from "../../src/library/tools/sub-agent.ts";
import { calledRunId, operationId } from "../../src/protocol/ids.ts";
import { library, workflow } from "../support/authored-library.ts";
import { PIN, PLAIN_CHAIN, recordOf } from "../support/records.ts";

const inner = defineWorkflow("inner", { input: z.object({}), initialNode: "one", nodes: [node("one")] });
const review = defineWorkflow("review", {
  input: z.object({ document: z.string() }),
  initialNode: "one",
  nodes: [node("one", { workflow: inner })],
});
const options = { name: "review", description: "Reviews a document." };

describe("FLOWTOOL-1 a tool over a workflow in code", () => {
  test("has the workflow's input, is idempotent, and adds its workflows to the library", () => {
    const tool = defineTool({ ...options, target: { workflow: review } });
    expect(tool.definition).toEqual({
      ...options,
      inputSchema: review.definition.inputSchema,
      ...{ effect: "idempotent", timeoutMs: 86_400_000, target: { workflow: "review" } },
    });
    expect(defineLibrary("my", { tools: [tool] }).workflows).toEqual([review, inner]);
    const input = z.object({ text: z.string() });
    const target = { workflow: review };
    const mapped = defineTool({
      ...options,
      target,
      input,
      inputMapping: { document: "input.text" },
      effect: "once",
    });
    expect(mapped.definition).toMatchObject({
      ...{ effect: "once", inputMapping: { document: "input.text" } },
      inputSchema: { required: ["text"] },
    });
  });

  test.each<[object, RegExp]>([
    [{ target: { workflow: review }, effect: "pure" }, /\/effect.*`idempotent` or `once`/],
    [{ target: { workflow: review }, hosts: [] }, /\/hosts/],
    [{ target: { workflow: review }, timeoutMs: 2_592_000_001 }, /\/timeoutMs: .*2592000000/],
    [{ target: { workflow: "other/review" } }, /\/input: Is required if `target.workflow`/],
    [{ target: { workflow: 5 }, input: z.object({}) }, /defineWorkflow/],
    [{ target: { workflow: review }, inputMapping: { a: "(" } }, /\/inputMapping\/a/],
    [{ target: { workflow: review }, execute: () => null }, /either `execute` or `target`/],
  ])("refuses %j", (more, message) => {
    // SAFETY: authors without types may write anything.
    expect(() => defineTool({ ...options, ...more } as Parameters<typeof defineTool>[0])).toThrow(message);
  });

  test("is refused if its library has no such workflow", () => {
    const tool = defineTool({ ...options, target: { workflow: "reveiw" }, input: z.object({}) });
    expect(() => defineLibrary("my", { tools: [tool], workflows: [review] })).toThrow(
      'Tool "review", /target/workflow: library "my" has no workflow "reveiw". It has: review, inner.',
    );
  });
});

describe("REG-9 a tool over a workflow that is pinned", () => {
  const key = { library: "own", id: "run" };
  const posted = { name: "run", description: "Runs it.", target: { workflow: "flow" } };

  test("names the version that its workflow has then, in a posted library and in code", async () => {
    const own = library([
      defineLibrary("my", { tools: [defineTool({ ...options, target: { workflow: review } })] }),
    ]);
    await own.add("workflow", "flow", workflow([{}]));
    const ports = { registry: own.registry(), mayReceiveKey: () => true, mayReach: () => true };
    const definition = await checkedTool(ports, key, posted);
    expect(definition).toEqual({
      ...posted,
      ...{ inputSchema: { type: "object" }, effect: "idempotent", timeoutMs: 86_400_000 },
      target: { workflow: "own/flow" },
    });
    await own.add("tool", "run", { ...definition, hosts: [] });
    const pinned = await own.registry().tool(key);
    expect(pinned.definition).toMatchObject({ target: { workflow: "own/flow@1" } });
    expect(pinned.definition).not.toHaveProperty("hosts");
    await own.add("workflow", "flow", workflow([{}, {}]));
    expect((await own.registry().tool(key)).definition.target).toEqual({ workflow: "own/flow@2" });
    expect((await own.registry().tool({ library: "my", id: "review" })).definition.target).toEqual({
      workflow: "my/review@1",
    });
  });

  test("is refused if the workflow does not exist, or if it promises too much", async () => {
    const own = library();
    await own.add("workflow", "flow", workflow([{}]));
    const ports = { registry: own.registry(), mayReceiveKey: () => true, mayReach: () => true };
    const post = (more: object) => checkedTool(ports, key, { ...posted, ...more });
    await expect(post({ target: { workflow: "folw" } })).rejects.toThrow(
      /\/target\/workflow: .*no workflow "folw"/,
    );
    await expect(post({ effect: "pure" })).rejects.toThrow(/\/effect: Must not promise more/);
    expect(await post({ effect: "once" })).toMatchObject({ effect: "once" });
  });
});

test("SPAWN-6 no network gives a sub-agent a tool over a workflow", () => {
  const target = { workflow: "a/b@1" };
  for (const network of ["any", "none", ["a.test"]] as const)
    expect(
      networkProblem({ target, hosts: [] }, typeof network === "string" ? network : [...network]),
    ).toMatch(/runs a workflow/);
});

describe("FLOWRUN-1 a call that may start no run", () => {
  const pinned = {
    ...{ ...PIN, library: "own", id: "run" },
    definition: {
      ...{ name: "run", description: "Runs it.", inputSchema: { type: "object" } },
      ...{ effect: "idempotent" as const, timeoutMs: 1, target: { workflow: "own/flow@1" } },
    },
  };
  const chain = { ...PLAIN_CHAIN, tools: [pinned] };
  const operation = {
    toolCallId: "c",
    name: "run",
    tool: { library: "own", id: "run", version: PIN.version },
    effect: "idempotent",
    target: "code",
    mode: "sync",
    status: "pending",
    attempt: 1,
    timeoutMs: 1,
    input: {},
  } as const;
  const origin = (path: string[], readers: string[]): CallOrigin => ({
    ...{ operationId: "op_1", attempt: 1, path, readers, deadline: 1, from: "conv_1" },
    caller: { agentId: "lead", turnId: "turn_1" },
  });
  const byAgent = { type: "agent", agentId: "lead", turnId: "turn_1" } as const;
  const turn = { n: 1, agentId: "tester", caller: byAgent };

  test("has no user, or is too deep", () => {
    const refusal = (path: string[], readers: string[]) =>
      runRefusal(recordOf(chain, { call: origin(path, readers) }), turn, operation)?.error?.message;
    expect(refusal(["lead"], ["ada"])).toBeUndefined();
    expect(refusal(["lead"], [])).toMatch(/belong to nobody/);
    expect(refusal(["a", "b", "c", "d", "e", "f", "g", "h", "i"], ["ada"])).toMatch(/At most \d+ calls/);
  });

  test("may be a hook's call, too; a hook that is a task is never refused", () => {
    const workflow = { ...PIN, library: "own", id: "flow", tasks: {}, workflows: {} };
    const definition = { inputSchema: { type: "object" }, initialNode: "n", nodes: [], transitions: [] };
    const refusal = (readers: string[], hook: Parameters<typeof hookRunRefusal>[2]) =>
      hookRunRefusal(recordOf(chain, { call: origin(["lead"], readers) }), turn, hook)?.error;
    const hook = { workflow: { ...workflow, definition } };
    expect(refusal(["ada"], hook)).toBeUndefined();
    expect(refusal([], {})).toBeUndefined();
    expect(refusal([], hook)).toMatchObject({
      code: "PERMISSION_DENIED",
      message: expect.stringMatching(/belong to nobody/),
    });
  });

  test("belongs to the user of the exchange, and else to the first reader", () => {
    const exchange = { of: 1, by: { type: "user", userId: "bob" } } as const;
    const called = recordOf(chain, { call: origin(["lead"], ["ada", "bob"]) });
    expect(userOf(called, turn)).toBe("ada");
    expect(userOf(called, { ...turn, exchange })).toBe("bob");
    expect(userOf(recordOf(chain), { ...turn, caller: { type: "user", userId: "eve" } })).toBe("eve");
    expect(userOf(recordOf(chain), turn)).toBeUndefined();
  });

  test("names the run of an attempt, unless it never began", () => {
    const record = recordOf(chain, { id: "conv_test_eu" });
    const begun = { n: 1, stem: "0".repeat(19), agentId: "tester" };
    const mark = (more: object) =>
      runMember(record, begun, { ...operation, item: 3, reply: 0, ...more }).runId;
    const id = operationId(begun, 3);
    expect(mark({})).toBe(calledRunId(id, 1, "eu"));
    expect(mark({ attempt: 2 })).toBe(calledRunId(id, 2, "eu"));
    expect(mark({ status: "awaiting_approval" })).toBeUndefined();
    const failed = (code: string) => ({ result: { tool_call_id: "c", success: false, error: { code } } });
    expect(mark(failed("INVALID_INPUT"))).toBeUndefined();
    expect(mark(failed("EXECUTION_FAILED"))).toBe(calledRunId(id, 1, "eu"));
    expect(mark({ tool: { ...operation.tool, id: "other" } })).toBeUndefined();
  });
});
