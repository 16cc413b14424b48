/**
 * The library with the tools that the recorded conversations have pinned. Recordings are permanent: add members, but
 * never rename or remove one.
 */
import { z } from "zod";
import {
  defineLibrary,
  defineModelProfile,
  defineTool,
  type Library,
} from "../../../src/library/define/define.ts";
import { defineTask } from "../../../src/library/define/define-task.ts";
import { ToolError } from "../../../src/library/tools/tool-error.ts";
import type { Persona, ToolEffect } from "../../../src/protocol/definitions.ts";
import type { RunRecord, Script } from "../provider-script.ts";

/** The ports of the tools. */
export interface ToolWorld {
  report(key: string, run: RunRecord): Promise<void>;
  pass(key: string, gate: string, signal: AbortSignal): Promise<void>;
}

export const RECORDED_PERSONA: Persona = {
  identity: { systemPrompt: "You are recorded." },
  tools: {
    toolIds: [
      "release/look_up",
      "release/save",
      "release/charge",
      "release/fails",
      "release/big",
      "release/counter",
    ],
  },
};

/** A persona with some of the tools. */
export const toolsOnly = (...tools: string[]): Persona => ({
  ...RECORDED_PERSONA,
  tools: { toolIds: tools.map((tool) => `release/${tool}` as const) },
});

/** The id of the agent that the tool `ask_helper` calls. */
export const RECORDED_HELPER = "recorded-helper";

/** Address of the provider in a recording. A test with a real one replaces it. */
export const RECORDED_PROVIDER = "http://provider.invalid/v1";

export function releaseLibrary({ report, pass }: ToolWorld): Library {
  const counted = (name: string, effect: ToolEffect) =>
    defineTool({
      name,
      description: `Reports its runs; ${effect}.`,
      input: z.object({ key: z.string(), n: z.number(), gate: z.string().optional() }),
      effect,
      async execute(input, { operationId, signal }) {
        await report(input.key, { tool: name, operationId, input });
        if (input.gate !== undefined) await pass(input.key, input.gate, signal);
        return { tool: name, n: input.n };
      },
    });
  const fails = defineTool({
    name: "fails",
    description: "Fails.",
    input: z.object({}),
    effect: "idempotent",
    execute: () => {
      throw new ToolError("The shelf is empty.");
    },
  });
  const big = defineTool({
    name: "big",
    description: "Returns a text of this many characters.",
    input: z.object({ size: z.int() }),
    effect: "idempotent",
    execute: ({ size }) => "x".repeat(size),
  });
  const counter = defineTool({
    name: "counter",
    description: "Counts up in the conversation's own memory.",
    input: z.object({}),
    effect: "once",
    async execute(_, { state }) {
      const before = await state.get("count");
      const count = typeof before === "number" ? before + 1 : 1;
      await state.put("count", count);
      return { count };
    },
  });
  const refund = defineTool({
    name: "refund",
    description: "Reports its runs after an approval.",
    input: z.object({ key: z.string(), n: z.number() }),
    approval: "always",
    async execute(input, { operationId }) {
      await report(input.key, { tool: "refund", operationId, input });
      return { refunded: input.n };
    },
  });
  const pay = defineTool({
    name: "pay",
    description: "Defers its result, and reports the handle.",
    input: z.object({ key: z.string() }),
    async execute(input, { operationId, defer }) {
      const deferred = await defer({ expiresInMs: 24 * 3_600_000 });
      await report(input.key, { tool: "pay", operationId, input: { handle: deferred.handle } });
      return deferred;
    },
  });
  const askHelper = defineTool({
    name: "ask_helper",
    description: "Asks the helper.",
    target: { agent: RECORDED_HELPER, mode: "delegate" },
  });
  /** Waits at a gate if the user of the script says its name. */
  const hook = (id: "assemble" | "extract", output: (text: string) => unknown) =>
    defineTask({
      id,
      input: z.looseObject({}),
      effect: "idempotent",
      async execute({ user_message, user_text = user_message }, { operationId, signal }) {
        const { key, says }: Script = JSON.parse(String(user_text));
        await report(key, { tool: id, operationId, input: {} });
        if (says === id) await pass(key, "hold", signal);
        return output(String(user_text));
      },
    });
  const assemble = hook("assemble", (content) => ({
    ...{ model: "scripted", stream: true },
    messages: [{ role: "user", content }],
  }));
  const extract = hook("extract", () => [{ op: "write", content: "Ada is recorded." }]);
  const tools = [
    counted("look_up", "pure"),
    counted("save", "idempotent"),
    counted("charge", "once"),
    fails,
    big,
    counter,
    refund,
    pay,
    askHelper,
  ];
  const titler = { provider: "openai", modelId: "scripted", baseUrl: RECORDED_PROVIDER } as const;
  const modelProfiles = [defineModelProfile("titler", titler)];
  return defineLibrary("release", { tools, tasks: [assemble, extract], modelProfiles });
}
