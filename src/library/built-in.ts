/** The library `dramatis`: the platform's own tasks and tools, always deployed beside the libraries of the application. */
import { defineLibrary } from "./define.ts";
import { consolidateMemories, consolidateWithoutModel } from "./memory/consolidation-tasks.ts";
import { extractMemories, extractWithoutModel } from "./memory/extraction-tasks.ts";
import { MEMORY_TOOLS } from "./memory/memory-tools.ts";

export const builtIn = defineLibrary("dramatis", {
  tasks: [extractMemories, extractWithoutModel, consolidateMemories, consolidateWithoutModel],
  tools: MEMORY_TOOLS,
});
