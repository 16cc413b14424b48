/** The library `dramatis`: the platform's own tasks, always deployed beside the libraries of the application. */
import { defineLibrary } from "./define.ts";
import { extractMemories, extractWithoutModel } from "./memory/extraction-tasks.ts";

export const builtIn = defineLibrary("dramatis", { tasks: [extractMemories, extractWithoutModel] });
