/**
 * Other forms of a persona's hooks.
 *
 * HOOKFORM-1  `contextAssemblyWorkflowId` and `memoryExtractionWorkflowId` name the task of the hook, as `contextAssembly: {task}`
 *             and `memoryExtraction: {task}` do. A persona that gives both forms is refused.
 */
import { z } from "zod";
import { defined } from "../shared/defined.ts";
import { isJsonObject } from "../shared/json.ts";

const FORMS = {
  contextAssembly: "contextAssemblyWorkflowId",
  memoryExtraction: "memoryExtractionWorkflowId",
} as const;

/** Returns the schema of a persona's memory, extended to the other forms. The output is that of `schema`. */
export function withHookForms<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.output<Schema>> {
  return z.preprocess((value, context) => {
    if (!isJsonObject(value)) return value;
    const { contextAssemblyWorkflowId, memoryExtractionWorkflowId, ...memory } = value;
    const target = (name: keyof typeof FORMS, id: unknown) => {
      if (id === undefined) return memory[name];
      if (memory[name] !== undefined) {
        const message = `The hook is given twice, also as \`${name}\`. Give one.`;
        context.addIssue({ code: "custom", path: [FORMS[name]], message });
      }
      return { task: id };
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
