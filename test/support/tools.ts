/** A small library of misbehaving tools, and calls of them. */
import { z } from "zod";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { DeployedCode } from "../../src/library/registry/deployed-code.ts";
import { ToolError } from "../../src/library/tools/tool-error.ts";
import type { ToolInvocation } from "../../src/protocol/executor-api.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import type { CallContext } from "../../src/shared/identifiers.ts";
import type { JsonObject } from "../../src/shared/json.ts";

/** Side effects of `testTools`, so that a test can assert their absence. */
export interface Trace {
  executed: string[];
  aborted: string[];
  /** Resolves when `steps` has reported once more after its result. */
  late: Promise<void>;
}

export function testTools(): { registry: DeployedCode; trace: Trace } {
  let reportedLate = () => {};
  const late = new Promise<void>((resolve) => {
    reportedLate = resolve;
  });
  const trace: Trace = { executed: [], aborted: [], late };
  const anything = z.record(z.string(), z.json());
  const add = defineTool({
    name: "add",
    description: "Adds two numbers.",
    input: z.object({ a: z.number(), b: z.number().default(1) }),
    effect: "pure",
    execute({ a, b }, { operationId }) {
      trace.executed.push(operationId);
      return a + b;
    },
  });
  const steps = defineTool({
    name: "steps",
    description: "Reports three steps, and one more when it has long answered.",
    input: z.object({}),
    execute(_, context) {
      for (const step of [1, 2, 3]) context.progress({ step });
      setTimeout(() => {
        context.progress("late");
        reportedLate();
      });
      return "done";
    },
  });
  const stubborn = defineTool({
    name: "stubborn",
    description: "Never answers, and does not listen.",
    input: z.object({}),
    execute: (_, { signal, operationId }) => {
      signal.addEventListener("abort", () => trace.aborted.push(operationId));
      return new Promise(() => {});
    },
  });
  const failing = defineTool({
    name: "failing",
    description: "Fails in the way it is told.",
    input: z.object({ how: z.enum(["tool-error", "coded", "dramatis", "plain", "text", "nothing", "long"]) }),
    execute({ how }) {
      switch (how) {
        case "tool-error":
          throw new ToolError("the shelf is empty");
        case "coded":
          throw new ToolError("ask somebody else", { code: "AGENT_DECLINED", retriable: true });
        case "dramatis":
          throw new DramatisError("FORBIDDEN", "you may not");
        case "plain":
          return undefinedFunction();
        case "text":
          throw "just text";
        case "nothing":
          throw undefined;
        case "long":
          throw new Error("x".repeat(5_000));
      }
    },
  });
  const giving = defineTool({
    name: "giving",
    description: "Returns what it is told.",
    input: z.object({ what: z.string() }),
    execute: ({ what }) => OUTPUTS[what]?.(),
  });
  const keeping = defineTool({
    name: "keeping",
    description: "Keeps a value in the conversation.",
    input: z.object({ key: z.string(), value: z.json() }),
    effect: "idempotent",
    async execute({ key, value }, { state }) {
      const before = await state.get(key);
      await state.put(key, value);
      return { before, entries: await state.list("") };
    },
  });
  const context = defineTool({
    name: "context",
    description: "Tells where it runs.",
    input: anything,
    execute: (input, { context: where, operationId, now }) => ({ input, where, operationId, now: now() }),
  });
  const tools = [add, steps, stubborn, failing, giving, keeping, context];
  return { registry: new DeployedCode([defineLibrary("test", { tools })]), trace };
}

const OUTPUTS: Record<string, () => unknown> = {
  nothing: () => undefined,
  absent: () => ({ kept: 1, left: undefined }),
  date: () => ({ at: new Date(0) }),
  bigint: () => ({ big: 1n }),
  nan: () => [Number.NaN],
  map: () => ({ map: new Map([[1, 2]]) }),
  set: () => new Set([1]),
  response: () => ({ rows: [new Response("{}")] }),
  promise: () => ({ later: Promise.resolve(1) }),
  function: () => () => 1,
  bytes: () => new Uint8Array(3),
  circle: () => {
    const circle: { self?: unknown } = {};
    circle.self = circle;
    return circle;
  },
  huge: () => "é".repeat(600_000),
  largest: () => "x".repeat(1_048_574),
};

let calls = 0;

/** Creates a call of a tool of `testTools` with its own operation id. */
export function callOf(
  id: string,
  input: JsonObject = {},
  change: Partial<ToolInvocation> = {},
): ToolInvocation {
  calls += 1;
  return {
    operationId: `op_${calls}`,
    attempt: 1,
    toolCallId: `call_${calls}`,
    tool: { library: "test", id, version: 1 },
    input,
    timeoutMs: 60_000,
    context: {
      tenant: "acme",
      projectId: "default",
      agentId: "agent",
      conversationId: "conv_1",
      turnId: "turn_1",
    },
    ...change,
  };
}

/** The context of a call that a run of a workflow makes. */
export function ofRun(change: { tenant?: string; runId?: string; node?: string } = {}): CallContext {
  return { tenant: "acme", projectId: "default", runId: "run_1", node: "review", ...change };
}

function undefinedFunction(): never {
  throw new TypeError("shelf.take is not a function");
}
