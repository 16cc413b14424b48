/**
 * The library whose tools the recorded conversations have pinned. Recordings are permanent: add members, but never
 * rename or remove one.
 */
import { z } from "zod";
import { defineLibrary, defineTool, type Library } from "../../../src/library/define/define.ts";
import { ToolError } from "../../../src/library/tools/tool-error.ts";
import type { Persona, ToolEffect } from "../../../src/protocol/definitions.ts";
import type { RunRecord } from "../provider-script.ts";

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
  const tools = [
    counted("look_up", "pure"),
    counted("save", "idempotent"),
    counted("charge", "once"),
    fails,
    big,
    counter,
  ];
  return defineLibrary("release", { tools });
}
