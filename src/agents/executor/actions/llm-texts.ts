/** Builds the request of an `llm` action from its texts. Pure. */
import { ToolError } from "../../../library/tools/tool-error.ts";
import type { ModelContext } from "../../../model/context.ts";
import type { ContextMessage } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import type { LlmAction, PromptDefinition } from "../../../protocol/task-definition.ts";
import { ExpressionError } from "../../../shared/expressions/values.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { type Meter, Spent } from "../../../shared/json-schema/meter.ts";
import { violations } from "../../../shared/json-schema/violations.ts";
import { render } from "../../../shared/templates/template.ts";

export type PinnedLlmAction = LlmAction<PromptDefinition, ModelProfile>;

/** Returns the schema of an action's answer. `undefined` means text. */
export function schemaOf({ outputSchema, prompt }: PinnedLlmAction): JsonObject | undefined {
  return outputSchema ?? prompt?.produces;
}

/** Returns the context of an action's call with these values. Throws `ToolError`. */
export function contextOf(action: PinnedLlmAction, input: Json, meter: Meter): ModelContext {
  const values = valuesOf(action, input);
  const { prompt } = action;
  const template = action.template ?? prompt?.template;
  if (template === undefined)
    throw new ToolError("It has no template and no prompt. Add a template or a prompt.");
  const system = action.systemPrompt ?? prompt?.systemPrompt;
  const schema = schemaOf(action);
  const instructions = system === undefined ? "" : rendered("system prompt", system, values, meter);
  const examples = (prompt?.examples ?? []).flatMap(({ input: example, output }): ContextMessage[] => [
    { role: "user", content: rendered("template of an example", template, example, meter) },
    { role: "assistant", content: typeof output === "string" ? output : JSON.stringify(output) },
  ]);
  const content = rendered("template", template, values, meter);
  if (content.trim() === "")
    throw new ToolError("Its message is empty with this input. Give the values that its template names.", {
      code: "INVALID_INPUT",
    });
  return {
    systemInstructions: instructions.trim() === "" ? [] : [instructions],
    messages: [...examples, { role: "user", content }],
    tools: [],
    toolChoice: "none",
    ...(schema && { output: { name: "answer", schema } }),
  };
}

function valuesOf({ prompt }: PinnedLlmAction, input: Json): JsonObject {
  const invalid = (problem: string) =>
    new ToolError(`Its input is not valid: ${problem}.`, { code: "INVALID_INPUT" });
  if (!isJsonObject(input)) throw invalid("it must be an object with the values of its texts");
  const found = prompt?.requires === undefined ? [] : violations(prompt.requires, input);
  if (found === null) throw invalid("the prompt's schema cannot be checked");
  if (found.length > 0) throw invalid(found.join("; "));
  return input;
}

function rendered(what: string, template: string, values: JsonObject, meter: Meter): string {
  try {
    return render(template, values, meter);
  } catch (cause) {
    if (cause instanceof ExpressionError) throw new ToolError(`Its ${what}: ${cause.message}`, { cause });
    if (!(cause instanceof Spent)) throw cause;
    throw new ToolError(
      `Its ${what} takes too many steps with this input. Give a smaller input, or shorten its loops.`,
      {
        cause,
      },
    );
  }
}
