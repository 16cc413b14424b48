/** The schema of prompts. */
import { z } from "zod";
import type { PromptDefinition } from "../../protocol/task-definition.ts";
import type { InputIssue } from "../../shared/errors.ts";
import { templateIssues } from "../../shared/templates/template.ts";
import { MAX_TEMPLATE_LENGTH } from "../../shared/templates/template-limits.ts";
import { memberOf } from "../definitions/schema-paths.ts";
import { missingVariables } from "./reads.ts";
import { objectSchemaCheck, schemaCheck, withKeywords } from "./schema-check.ts";
import { MAX_PROMPT_EXAMPLES } from "./task-limits.ts";

const template = z
  .string()
  .min(1)
  .max(MAX_TEMPLATE_LENGTH)
  .superRefine((source, context) => {
    for (const { message } of templateIssues(source)) context.addIssue({ code: "custom", message });
  });

export const promptSchema = z
  .strictObject({
    description: z.string().min(1).max(10_000).exactOptional(),
    systemPrompt: template.exactOptional(),
    template,
    requires: withKeywords(objectSchemaCheck).exactOptional(),
    produces: withKeywords(schemaCheck).exactOptional(),
    examples: z
      .array(z.strictObject({ input: z.record(z.string(), z.json()), output: z.json() }))
      .max(MAX_PROMPT_EXAMPLES)
      .exactOptional(),
  })
  .superRefine((prompt, context) => {
    for (const { path, message } of promptIssues(prompt))
      context.addIssue({ code: "custom", path: [path], message });
  }) satisfies z.ZodType<PromptDefinition>;

/** Returns a problem for each variable of a prompt that `requires` lacks (STEPREAD-3). */
function promptIssues({ systemPrompt, template: text, requires }: PromptDefinition): InputIssue[] {
  if (requires === undefined) return [];
  const isGiven = (name: string) => memberOf(requires, [name]).kind !== "absent";
  const where = "`requires` does not have";
  return [
    ...missingVariables(systemPrompt, isGiven, "systemPrompt", where),
    ...missingVariables(text, isGiven, "template", where),
  ];
}
