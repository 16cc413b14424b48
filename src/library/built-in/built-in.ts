/** The library `dramatis`: the tasks and tools of the platform. Every deployment includes it. */
import { defineLibrary } from "../define/define.ts";
import { consolidateMemories, consolidateWithoutModel } from "./consolidation-tasks.ts";
import { extractMemories, extractWithoutModel } from "./extraction-tasks.ts";
import { MEMORY_TOOLS } from "./memory-tools.ts";

export const builtIn = defineLibrary("dramatis", {
  tasks: [extractMemories, extractWithoutModel, consolidateMemories, consolidateWithoutModel],
  tools: MEMORY_TOOLS,
});
