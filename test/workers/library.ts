/** The library that the tests on workerd use: tools whose every run is counted in the provider's own log. */
import { z } from "zod";
import { defineLibrary, definePersona, defineTool } from "../../src/library/define.ts";

const double = defineTool({
  name: "double",
  description: "Doubles a number.",
  input: z.object({ n: z.number() }),
  effect: "pure",
  execute: ({ n }) => ({ doubled: n * 2 }),
});

export const testLibrary = defineLibrary("test", {
  personas: [
    definePersona("plain", { identity: { systemPrompt: "You are a test." } }),
    definePersona("doubler", {
      identity: { systemPrompt: "You are a test." },
      tools: { toolIds: ["double"] },
    }),
  ],
  tools: [double],
});
