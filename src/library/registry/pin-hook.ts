/**
 * Pins a hook of a persona.
 *
 * HOOKPIN-1  The workflow of a hook is pinned with all that it runs: later versions of any part do not reach the conversation.
 */
import type { PinnedHook } from "../../protocol/definitions.ts";
import type { PinnedWorkflow } from "../../protocol/pinned-workflow.ts";
import { invalid } from "../../shared/errors.ts";
import { formatReference } from "../definitions/reference.ts";
import { questionOf } from "../tasks/pin.ts";
import { findHook, type NamedHook } from "./hook.ts";
import { type PinOptions, pinWorkflow } from "./pin.ts";
import type { Registry } from "./registry.ts";

/** Returns a hook with its task, or with its workflow and all that this runs. Throws as `findHook` and `pinWorkflow` do. */
export async function pinHook(registry: Registry, hook: NamedHook, options: PinOptions): Promise<PinnedHook> {
  const { version, ...found } = await findHook(registry, hook);
  if (version === undefined) return found;
  const { library, id } = found;
  // The number is unknown while the database does not answer (REG-5).
  const reference = formatReference({ library, id, ...(version === 0 ? {} : { version }) });
  const workflow = await pinWorkflow(registry, reference, options);
  refuseQuestions(workflow);
  return { ...found, workflow };
}

/** Throws `INVALID_INPUT` for a workflow that asks a person: a turn does not wait for one (REG-8). */
export function refuseQuestions({ library, id, tasks, workflows }: PinnedWorkflow): void {
  const asking = Object.values(tasks).find(({ task }) => questionOf(task) !== undefined);
  if (asking !== undefined)
    throw invalid(
      `The workflow "${library}/${id}" asks a person in its task "${asking.library}/${asking.id}", and a turn does not wait for one. Name another workflow.`,
    );
  for (const inner of Object.values(workflows)) refuseQuestions(inner);
}
