/**
 * The hooks of a persona as authors write them.
 *
 * HOOKFORM-1  `contextAssemblyWorkflowId` and `memoryExtractionWorkflowId` mean `contextAssembly: {workflow}` and
 *             `memoryExtraction: {workflow}`. A persona with both forms is rejected.
 * HOOKFORM-2  A hook names exactly one task or one workflow. Naming both is an error. An empty hook is an error.
 */
import { z } from "zod";
import type { HookName, HookTarget } from "../../protocol/definitions.ts";
import { defined } from "../../shared/defined.ts";
import { isJsonObject } from "../../shared/json.ts";
import { referenceSchema } from "../definitions/reference.ts";

export const HOOKS = ["contextAssembly", "memoryExtraction"] as const satisfies readonly HookName[];

const FORMS = {
  contextAssembly: "contextAssemblyWorkflowId",
  memoryExtraction: "memoryExtractionWorkflowId",
} as const satisfies Record<HookName, string>;

/** The target of a hook (HOOKFORM-2). */
export const hookTargetSchema = z.union(
  [z.strictObject({ task: referenceSchema }), z.strictObject({ workflow: referenceSchema })],
  {
    error: ({ input }) =>
      isJsonObject(input) && "task" in input && "workflow" in input
        ? "Names a task and a workflow. Remove one: a hook runs either."
        : "Must be {task}, with a reference to a task or a tool in code, or {workflow}, with a reference to a workflow.",
  },
);

/** Extends the schema of a persona's memory to the other forms. The output type stays the same. */
export function withHookForms<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.output<Schema>> {
  return z.preprocess((value, context) => {
    if (!isJsonObject(value)) return value;
    const { contextAssemblyWorkflowId, memoryExtractionWorkflowId, ...memory } = value;
    const target = (name: HookName, id: unknown) => {
      if (id === undefined) return memory[name];
      if (memory[name] !== undefined) {
        const message = `The hook is also given as \`${name}\`. Remove one.`;
        context.addIssue({ code: "custom", path: [FORMS[name]], message });
      }
      return { workflow: id };
    };
    return {
      ...memory,
      ...defined({
        contextAssembly: target("contextAssembly", contextAssemblyWorkflowId),
        memoryExtraction: target("memoryExtraction", memoryExtractionWorkflowId),
      }),
    };
  }, schema);
}

export function hookReference(target: HookTarget) {
  return "task" in target
    ? ({ kind: "task", reference: target.task } as const)
    : ({ kind: "workflow", reference: target.workflow } as const);
}

/** The fix for a hook that names a definition in the wrong field, by the kind of the definition. */
export const OTHER_HOOK = {
  task: "It is a task: name it in `task`.",
  workflow: "It is a workflow: name it in `workflow`.",
} as const;
