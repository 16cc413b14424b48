/** The library `dramatis`: the tasks and tools of the platform. Every deployment includes it. */
import { defineLibrary } from "../define/define.ts";
import { ARTIFACT_TOOLS } from "./artifact-tools.ts";
import { consolidateMemories, consolidateWithoutModel } from "./consolidation-tasks.ts";
import { extractMemories, extractWithoutModel } from "./extraction-tasks.ts";
import { MEMORY_TOOLS } from "./memory-tools.ts";
import { READ_SKILL } from "./skill-tool.ts";
import { WORKSPACE_TOOLS } from "./workspace-tools.ts";

export const builtIn = defineLibrary("dramatis", {
  tasks: [extractMemories, extractWithoutModel, consolidateMemories, consolidateWithoutModel],
  tools: [...MEMORY_TOOLS, ...WORKSPACE_TOOLS, ...ARTIFACT_TOOLS, READ_SKILL],
});
