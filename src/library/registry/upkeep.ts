/**
 * The upkeep of an agent's old memories, as its persona defines it.
 *
 * CONSOLIDATE-7  The consolidation runs the task or the workflow that `by` names. By default it runs the platform's task, which asks the
 *                persona's model. With the offline model, the platform's task quotes the memories.
 */
import type { ModelProfile } from "../../model/profile.ts";
import type { HookTarget, Persona, PersonaSource, PinnedHook } from "../../protocol/definitions.ts";
import type { MemoryScope } from "../../protocol/memory.ts";
import { defined } from "../../shared/defined.ts";
import { consolidateMemories, consolidateWithoutModel } from "../built-in/consolidation-tasks.ts";
import { withModels } from "../tasks/pin.ts";
import { pinBuiltIn } from "./pin-extraction.ts";
import { pinHook } from "./pin-hook.ts";
import type { Registry } from "./registry.ts";
import { resolveChain } from "./resolve.ts";

type Memory = NonNullable<Persona["memory"]>;

export interface Upkeep {
  scope: MemoryScope;
  retention: NonNullable<Memory["retention"]>;
  /** Absent if no memories are consolidated on a schedule. */
  consolidation?: { types: string[]; everyMs: number; minimum: number };
  /** Consolidates memories, on the schedule, and if a summary must be made again. */
  hook: PinnedHook;
}

const HOUR_MS = 3_600_000;

/**
 * Returns the upkeep that a persona asks for. Throws as `resolveChain` does, and for a consolidation by a task or a workflow that does not exist
 * or cannot run here.
 */
export async function resolveUpkeep(
  registry: Registry,
  source: PersonaSource,
  defaultProfile: ModelProfile,
  complete: (profile: ModelProfile) => ModelProfile = (same) => same,
): Promise<Upkeep> {
  const { persona, modelProfile } = await resolveChain(registry, source, defaultProfile, complete);
  const { scope = "agent", retention = {}, consolidation } = persona.definition.memory ?? {};
  const { types = ["episode"], everyHours = 24, minimum = 10, by } = consolidation ?? {};
  const profile = modelProfile.definition;
  const hook =
    by === undefined
      ? await pinBuiltIn(registry, profile, {
          byModel: consolidateMemories.id,
          byRules: consolidateWithoutModel.id,
        })
      : await pinTarget(registry, by, persona.library, { profile, complete });
  const plan = { types, everyMs: everyHours * HOUR_MS, minimum };
  return { scope, retention, hook, ...(consolidation && { consolidation: plan }) };
}

async function pinTarget(
  registry: Registry,
  target: HookTarget,
  home: string | undefined,
  { profile, complete }: { profile: ModelProfile; complete: (profile: ModelProfile) => ModelProfile },
): Promise<PinnedHook> {
  const { task, ...hook } = await pinHook(
    registry,
    { name: "consolidation", target, home },
    { defaultProfile: profile, complete },
  );
  return { ...hook, ...defined({ task: task && withModels(task, profile, complete) }) };
}
