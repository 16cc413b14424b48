/**
 * Pins the extraction of a persona with `extract`.
 *
 * LEARN-9  The extraction asks the persona's model, or the model of the profile in `extract`. For the offline model,
 *          fixed rules replace the model.
 */
import type { ModelProfile } from "../../model/profile.ts";
import type { PinnedHook } from "../../protocol/definitions.ts";
import { builtIn } from "../built-in/built-in.ts";
import { extractMemories, extractWithoutModel } from "../built-in/extraction-tasks.ts";
import { withModels } from "../tasks/pin.ts";
import type { Registry } from "./registry.ts";

export function pinExtraction(registry: Registry, profile: ModelProfile): Promise<PinnedHook> {
  return pinBuiltIn(registry, profile, { byModel: extractMemories.id, byRules: extractWithoutModel.id });
}

/** Returns a task of the platform's library as a hook. The offline model has its own task. */
export async function pinBuiltIn(
  registry: Registry,
  profile: ModelProfile,
  { byModel, byRules }: { byModel: string; byRules: string },
): Promise<PinnedHook> {
  const isOffline = profile.provider === "offline";
  const { library, id, definition, task } = await registry.runnable({
    library: builtIn.id,
    id: isOffline ? byRules : byModel,
  });
  const { effect, timeoutMs } = definition;
  if (task === undefined) return { library, id, effect, timeoutMs };
  return { library, id, effect, timeoutMs, task: withModels(task, profile, (same) => same) };
}
