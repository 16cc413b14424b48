/** Tools over workflows: in code, posted, pinned, kept from sub-agents, and run by the Executor. */
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { runMark, userOf } from "../../src/agents/conversation/core/called-workflow.ts";
import { hookRunRefusal, runRefusal } from "../../src/agents/conversation/core/planning/call-guards.ts";
import type { CallOrigin } from "../../src/agents/conversation/core/state.ts";
import { readCalls } from "../../src/agents/executor/calls.ts";
import { runTool } from "../../src/agents/executor/run-tool.ts";
import { runWorkflow } from "../../src/agents/executor/run-workflow.ts";
import { checkedTool } from "../../src/library/authoring.ts";
import { defineLibrary, defineTool } from "../../src/library/define.ts";
import { DeployedCode } from "../../src/library/deployed-code.ts";
import { networkProblem } from "../../src/library/sub-agent.ts";
import { defineWorkflow, node } from "../../src/library/workflows/define-workflow.ts";
import type { Amounts } from "../../src/model/spending.ts";
import { systemClock } from "../../src/ports/system.ts";
import type { CoordinatorApi, RunView } from "../../src/protocol/coordinator-api.ts";
import type { ActorAddress } from "../../src/protocol/envelope.ts";
import type { ToolInvocation } from "../../src/protocol/executor-api.ts";
import { calledRunId, operationId } from "../../src/protocol/ids.ts";
import { library, workflow } from "../support/authored-library.ts";
import { memoryToolState, noHandles, noMemory } from "../support/local-executor.ts";
import { PIN, PLAIN_CHAIN, recordOf } from "../support/records.ts";
import { callOf } from "../support/tools.ts";

const inner = defineWorkflow("inner", { input: z.object({}), initialNode: "one", nodes: [node("one")] });
const review = defineWorkflow("review", {
  input: z.object({ document: z.string() }),
  initialNode: "one",
  nodes: [node("one", { workflow: inner })],
});
const options = { name: "review", description: "Reviews a document." };

describe("FLOWTOOL-1 a tool over a workflow in code", () => {
  test("has the workflow's input, is idempotent, and brings its workflows into the library", () => {
    const tool = defineTool({ ...options, target: { workflow: review } });
    expect(tool.definition).toEqual({
      ...options,
      inputSchema: review.definition.inputSchema,
      ...{ effect: "idempotent", timeoutMs: 900_000, target: { workflow: "review" } },
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
    [{ target: { workflow: review }, timeoutMs: 900_001 }, /\/timeoutMs: Must be 900000 at most/],
    [{ target: { workflow: "other/review" } }, /\/input: Is required where `target.workflow`/],
    [{ target: { workflow: 5 }, input: z.object({}) }, /defineWorkflow/],
    [{ target: { workflow: review }, inputMapping: { a: "(" } }, /\/inputMapping\/a/],
    [{ target: { workflow: review }, execute: () => null }, /not both/],
  ])("refuses %j", (more, message) => {
    // SAFETY: authors without types may write anything.
    expect(() => defineTool({ ...options, ...more } as Parameters<typeof defineTool>[0])).toThrow(message);
  });

  test("is refused where its library has no such workflow", () => {
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
      ...{ inputSchema: { type: "object" }, effect: "idempotent", timeoutMs: 900_000 },
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

  test("is refused where the workflow does not exist, or it promises too much", async () => {
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

  test("may be that of a hook, too; a hook that is a task is never refused", () => {
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
    const mark = (more: object) => runMark(record, begun, { ...operation, item: 3, reply: 0, ...more }).runId;
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

const reviewed = callOf("review", { document: "x" });
const origin = {
  ...{ conversationId: `conv_${"0".repeat(26)}`, turnId: "turn_1", agentId: "guide" },
  ...{ operationId: `op_${"0".repeat(26)}`, attempt: 1 },
};
const called = { reference: "a/b@1", startedBy: "ada", path: ["guide"], origin };
const call = { ...reviewed, workflow: called } satisfies ToolInvocation;

test("readCalls takes a workflow, and refuses one that is not whole", () => {
  const without = (name: keyof typeof called) => {
    const { [name]: _, ...workflow } = called;
    return { ...call, operationId: `op_${name}`, workflow };
  };
  const { calls, refused } = readCalls([
    call,
    without("reference"),
    without("startedBy"),
    without("path"),
    without("origin"),
    { ...call, operationId: "op_empty", workflow: { ...called, startedBy: "" } },
  ]);
  expect(calls).toEqual([call]);
  expect(refused).toHaveLength(5);
});

const NO_USE = { tokens: 0, usd: 0, toolCalls: 0, modelCalls: 0 };

/** A run as its actor answers it. */
const run = (more: Partial<RunView>): RunView => ({
  ...{
    id: calledRunId(call.operationId, 1),
    workflow: { library: "a", id: "b", version: 1 },
    projectId: "p",
  },
  ...{ status: "running", startedBy: "ada", createdAt: "", input: {}, state: {}, seq: 1, tokens: 1 },
  ...{ active: [], gates: [], usage: NO_USE },
  ...more,
});

/** Runs the call with an actor that answers so. */
async function runWith(
  api: Partial<CoordinatorApi>,
  { signal = new AbortController().signal, clock = systemClock } = {},
) {
  const asked: ActorAddress[] = [];
  const late: Promise<unknown>[] = [];
  const used: Amounts[] = [];
  const coordinator = async (address: ActorAddress) => {
    asked.push(address);
    // SAFETY: the call uses these methods only.
    return api as CoordinatorApi;
  };
  const ports = { clock, coordinator, waitUntil: (work: Promise<unknown>) => void late.push(work) };
  const result = await runWorkflow(ports, call, signal, (spent) => used.push(spent)).catch(
    (error: unknown) => error,
  );
  await Promise.all(late);
  return { result, asked, used };
}

describe("the run of a call", () => {
  const ok = (more: Partial<RunView>) => ({ ok: true as const, value: run(more) });

  test("FLOWCALL-1 FLOWCALL-2 has an id of the operation, and gives its output", async () => {
    const start = vi.fn(async () => ok({}));
    const finished = vi
      .fn()
      .mockResolvedValueOnce(ok({}))
      .mockResolvedValueOnce(ok({ status: "completed", output: { a: 1 } }));
    const { result, asked } = await runWith({ start, finished });
    const id = calledRunId(call.operationId, 1);
    expect(result).toEqual({ a: 1 });
    expect(asked[0]).toEqual({ kind: "coordinator", tenant: call.context.tenant, id });
    expect(start).toHaveBeenCalledWith(
      { subject: "ada", tenant: call.context.tenant, roles: [] },
      expect.objectContaining({
        id,
        workflow: "a/b@1",
        idempotencyKey: call.operationId,
        path: ["guide"],
        origin,
      }),
    );
  });

  test.each<[Partial<RunView>, object]>([
    [
      { status: "failed", error: { code: "INVALID_INPUT", message: "No." } },
      { code: "EXECUTION_FAILED", message: expect.stringMatching(/is failed: INVALID_INPUT: No\.$/) },
    ],
    [{ status: "timed_out" }, { code: "TIMEOUT" }],
    [{ status: "cancelled", error: { code: "CANCELLED", message: "Enough." } }, { code: "EXECUTION_FAILED" }],
  ])("FLOWCALL-2 %j is a failure", async (ended, error) => {
    const { result } = await runWith({ start: async () => ok(ended) });
    expect(result).toMatchObject(error);
  });

  test("FLOWCALL-3 is cancelled after its start, where the call ends before", async () => {
    const controller = new AbortController();
    const cancel = vi.fn(async () => ok({ status: "cancelled" }));
    const { result } = await runWith(
      {
        async start() {
          controller.abort();
          expect(cancel).not.toHaveBeenCalled();
          return ok({});
        },
        finished: async () => ok({ status: "cancelled" }),
        cancel,
      },
      controller,
    );
    expect(result).toMatchObject({ code: "CANCELLED" });
    expect(cancel).toHaveBeenCalledTimes(1);
  });

  test.each<Partial<RunView>>([{ status: "completed" }, { status: "failed" }, { status: "timed_out" }])(
    "FLOWCALL-5 reports what it has used, also where it is %j",
    async (ended) => {
      const usage = (tokens: number) => ({ ...NO_USE, tokens, usd: 0.000_000_003, modelCalls: 1 });
      const { used } = await runWith({
        start: async () => ok({ usage: usage(3) }),
        finished: async () => ok({ ...ended, usage: usage(7) }),
      });
      expect(used.at(-1)).toEqual({ tokens: 7, nanoDollars: 3, toolCalls: 0, modelCalls: 1 });
    },
  );

  test("FLOWCALL-4 is asked again where its connection breaks, but not for ever, and not where it refuses", async () => {
    const clock = { ...systemClock, sleep: async () => undefined };
    const broken = new Error("The Durable Object was reset.");
    const start = vi.fn().mockRejectedValueOnce(broken).mockResolvedValueOnce(ok({}));
    const finished = vi
      .fn()
      .mockRejectedValueOnce(broken)
      .mockResolvedValueOnce(ok({ status: "completed" }));
    expect((await runWith({ start, finished }, { clock })).result).toEqual({});
    expect((await runWith({ start: () => Promise.reject(broken) }, { clock })).result).toBe(broken);
    const refusal = { code: "NOT_FOUND", message: "No such workflow.", retriable: false };
    const refuses = vi.fn(async () => ({ ok: false as const, error: refusal }));
    expect((await runWith({ start: refuses }, { clock })).result).toMatchObject({ code: "NOT_FOUND" });
    expect(refuses).toHaveBeenCalledTimes(1);
  });

  test("is an error of an executor that runs none", async () => {
    const ports = {
      ...{
        tools: new DeployedCode([]),
        clock: systemClock,
        state: () => memoryToolState(),
        memory: noMemory,
        defer: noHandles,
      },
      ...{ baseUrl: undefined, mayReach: () => true, vectors: new Map() },
    };
    const listener = { onProgress: () => undefined, onAbandoned: () => undefined };
    expect(await runTool(ports, call, new AbortController().signal, listener)).toMatchObject({
      result: { error: { message: "This executor runs no workflows." } },
    });
  });
});
