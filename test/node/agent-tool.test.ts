/** Tools that agents answer: the errors that their authors and models get for wrong use. */
import { describe, expect, test, vi } from "vitest";
import { isAnswered } from "../../src/agents/conversation/core/planning/approval.ts";
import { defineLibrary, defineTool } from "../../src/library/define/define.ts";
import { agentCall, modelInputSchema, modeProblem } from "../../src/library/tools/agent-tool.ts";
import { toolDefinitionSchema } from "../../src/library/tools/tool-schema.ts";
import type { AgentTarget } from "../../src/protocol/definitions.ts";
import { newParticipantSchema } from "../../src/protocol/participants.ts";
import { validate } from "../../src/shared/validation.ts";
import { reportUndeclared } from "../../src/startup.ts";

const NAMED = { name: "ask", description: "Asks." };

describe("a tool in code", () => {
  test.each([["developer"], [{ agentId: "developer" }]])(
    "AGENTTOOL-1 with the target %j gets an error with the form of a target",
    (target) => {
      expect(() => defineTool({ ...NAMED, target } as never)).toThrow(
        'Tool "ask": /target: Must be {agent}, {task}, {workflow} or {a2a}',
      );
    },
  );

  test("AGENTTOOL-1 with neither code nor an agent gets an error that names both", () => {
    expect(() => defineTool(NAMED as never)).toThrow("`target: {agent}` instead");
  });

  test("AGENTTOOL-1 with both gets an error to remove one of them", () => {
    const both = { ...NAMED, target: { agent: "a" }, execute: () => 1 };
    expect(() => defineTool(both as never)).toThrow("`execute` or `target`. Remove one");
  });
});

test("AGENTTOOL-1 a tool in code that calls an agent which is not declared is reported at the start, with the ids that are", () => {
  const warnings: string[] = [];
  const warn = vi.spyOn(console, "warn").mockImplementation((text: string) => void warnings.push(text));
  const to = (agent: string) => defineTool({ ...NAMED, name: `ask_${agent}`, target: { agent } });
  const crew = defineLibrary("crew", { tools: [to("develper"), to("developer")] });
  const persona = "crew/dev";
  reportUndeclared([], [crew]);
  expect(warnings).toEqual([]);
  reportUndeclared(
    [
      { id: "lawyer", persona },
      { id: "developer", persona },
    ],
    [crew],
  );
  expect(warnings).toEqual([
    'Tool "crew/ask_develper" calls the agent "develper", which `agents` does not declare: developer, lawyer. Its calls are NOT_FOUND unless the agent was made by API.',
  ]);
  warn.mockRestore();
});

test.each([["developer"], [{ agnt: "developer" }], [5]])(
  "AGENTTOOL-1 a posted tool with the target %j gets an error with the forms of targets",
  (target) => {
    const posted = { ...NAMED, inputSchema: { type: "object" }, effect: "once", timeoutMs: 1_000, target };
    expect(() => validate(toolDefinitionSchema, posted)).toThrow(
      "/target: Must be {agent, mode?, modes?, handoff?}",
    );
  },
);

test.each([["all"], [{ text: "x" }], [5]])(
  "HANDOFF-1 an unknown handoff %j gets an error with the known handoffs",
  (handoff) => {
    const agent = { type: "agent", id: "lawyer", handoff };
    expect(() => validate(newParticipantSchema, agent)).toThrow(
      '/handoff: Must be "none", "latest-turn", "recent", "full", or {custom}',
    );
  },
);

test("AGENTTOOL-1 an unknown mode gets an error with the known modes", () => {
  expect(modeProblem({ agent: "a" }, { message: "x", invocationMode: "shout" })).toBe(
    '/invocationMode: Must be "delegate" or "loop_in". Leave it out for the usual way.',
  );
  expect(modeProblem({ agent: "a" }, { message: "x" })).toBeNull();
});

describe("AGENTTOOL-2 the modes of a target", () => {
  const bound = (target: object) => {
    const { definition } = defineTool({ ...NAMED, target: { agent: "worker", ...target } });
    return { ...definition, target: definition.target as AgentTarget };
  };
  const choice = (target: object) => modelInputSchema(bound(target)).properties;
  const joining = { message: "x", invocationMode: "loop_in" };

  test("with one mode the model has no choice, and a call with another mode is refused", () => {
    const { target } = bound({ modes: ["delegate"] });
    expect(choice({ modes: ["delegate"] })).not.toHaveProperty("invocationMode");
    expect(agentCall(target, joining)).toEqual({ mode: "delegate", input: joining });
    expect(modeProblem(target, joining)).toBe(
      '/invocationMode: Must be "delegate". Leave it out for the usual way.',
    );
    const named = { message: "x", invocationMode: "delegate" };
    expect(agentCall(target, named)).toEqual({ mode: "delegate", input: { message: "x" } });
  });

  test("the first is the usual one, unless `mode` is another of them", () => {
    const modeOf = (target: object) => agentCall(bound(target).target, { message: "x" }).mode;
    expect(modeOf({})).toBe("delegate");
    expect(modeOf({ modes: ["loop_in"] })).toBe("loop_in");
    expect(modeOf({ modes: ["loop_in", "delegate"] })).toBe("loop_in");
    expect(modeOf({ mode: "delegate", modes: ["loop_in", "delegate"] })).toBe("delegate");
    expect(choice({ modes: ["loop_in", "delegate"] })).toHaveProperty("invocationMode.enum", [
      "delegate",
      "loop_in",
    ]);
  });

  test("a mode alone stays a default that the model may override", () => {
    const { target } = bound({ mode: "delegate" });
    expect(agentCall(target, joining)).toEqual({ mode: "loop_in", input: { message: "x" } });
    expect(choice({ mode: "delegate" })).toHaveProperty("invocationMode");
  });

  test.each<[object, string]>([
    [{ modes: [] }, "/target/modes"],
    [{ modes: ["delegate", "delegate"] }, "/target/modes: Must not repeat a mode."],
    [{ modes: ["shout"] }, "/target/modes/0"],
    [{ mode: "loop_in", modes: ["delegate"] }, "/target/mode: Must be one of `modes`"],
    [{ handoff: "custom", modes: ["delegate"] }, "/target/handoff: Has no effect"],
    [{ modes: ["delegate", "loop_in"], template: { name: "t", tools: [] } }, "A sub-agent cannot join"],
  ])("%j is refused with its place", (target, place) => {
    expect(() => bound(target)).toThrow(place);
  });

  test("a sub-agent is always a delegate", () => {
    const target = { modes: ["delegate"], template: { name: "t", tools: [] } };
    expect(agentCall(bound(target).target, joining).mode).toBe("delegate");
  });
});

test("ASK-1 the answer to a call with an open request names this request", () => {
  const ask = { operationId: "op_below", conversationId: "conv_x", agentId: "a", name: "pay", expiresAt: 1 };
  const call = { status: "dispatched", agent: { id: "a", mode: "delegate", asks: [ask] } };
  expect(() => isAnswered(call as never, true)).toThrow("it waits for an agent that asks. Answer op_below.");
});
