/**
 * The hooks of personas and their consolidations, looked up.
 *
 * REG-8  A hook cannot run a definition that needs a person's approval.
 */
import { needsApproval } from "../../protocol/approval.ts";
import type { HookTarget, PinnedHook } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { hasCode, invalid, notFound } from "../../shared/errors.ts";
import { formatReference, type LibraryReference, parseReference } from "../definitions/reference.ts";
import { checkHookFit, checkHookTask } from "../hooks/hook-fit.ts";
import { hookReference, OTHER_HOOK } from "../hooks/hook-forms.ts";
import type { HookUse } from "../hooks/hook-inputs.ts";
import { MAX_TIMEOUT_MS } from "../tools/tool-schema.ts";
import { WORKFLOW_DEFAULTS } from "../tools/workflow-tool.ts";
import type { Registry } from "./registry.ts";

/** A hook of a persona, and the default library for a bare id. */
export interface NamedHook {
  name: HookUse;
  target: HookTarget;
  home: string | undefined;
}

/** A resolved hook. A workflow hook has the version of the workflow, but not its content. */
type FoundHook = PinnedHook & { version?: number };

/**
 * Returns a hook of a persona. Throws `NOT_FOUND`, and `INVALID_INPUT` for a task or a workflow that cannot be this hook.
 * @example await findHook(registry, { name: "contextAssembly", target: { workflow: "assemble" }, home: "my" });
 */
export async function findHook(registry: Registry, { name, target, home }: NamedHook): Promise<FoundHook> {
  const { kind, reference } = hookReference(target);
  const named = parseReference(reference, home);
  try {
    return kind === "task"
      ? await overTask(registry, name, named)
      : await overWorkflow(registry, name, named);
  } catch (error) {
    if (!hasCode(error, "NOT_FOUND")) throw error;
    const other = kind === "task" ? "workflow" : "task";
    if (!(await exists(registry, other, named))) throw error;
    throw notFound(`${error.message} ${OTHER_HOOK[other]}`, error.options);
  }
}

async function overTask(registry: Registry, name: HookUse, reference: LibraryReference): Promise<FoundHook> {
  const { library, id, definition, task } = await registry.runnable(reference);
  const { effect, timeoutMs, approval } = definition;
  if (needsApproval(approval)) {
    const message = `"${library}/${id}" needs a person's approval of each call, so it cannot be a hook.`;
    throw invalid(message);
  }
  checkHookTask(name, `${library}/${id}`, definition);
  return { library, id, effect, timeoutMs, ...defined({ task }) };
}

async function overWorkflow(
  registry: Registry,
  name: HookUse,
  reference: LibraryReference,
): Promise<FoundHook> {
  const { library, id, version, definition } = await registry.workflow(reference);
  checkHookFit(name, formatReference(reference), definition);
  return { library, id, version, effect: WORKFLOW_DEFAULTS.effect, timeoutMs: MAX_TIMEOUT_MS };
}

async function exists(
  registry: Registry,
  kind: "task" | "workflow",
  reference: LibraryReference,
): Promise<boolean> {
  const found = kind === "task" ? registry.schemas(reference) : registry.workflow(reference);
  return found.then(
    () => true,
    () => false,
  );
}
