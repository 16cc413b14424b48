import { type MemoryCall, memoryFor } from "../../src/agents/executor/memory.ts";

/** The `memory` of an executor for agents without memory. */
export const noMemory = (call: MemoryCall) =>
  memoryFor(
    {
      agent: () => Promise.reject(new Error("This executor finds no agents.")),
      pastTurns: () => Promise.reject(new Error("This executor reads no conversations.")),
    },
    call,
  );
