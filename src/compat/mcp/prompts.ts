/** Prompts of libraries as prompts of MCP. Pure. */
import type { GetPromptResult } from "@modelcontextprotocol/server";
import type { PromptDefinition } from "../../protocol/task-definition.ts";
import { type DramatisError, invalid } from "../../shared/errors.ts";
import { ExpressionError } from "../../shared/expressions/values.ts";
import { isJsonObject, type JsonObject, parseJson } from "../../shared/json.ts";
import { Meter, Spent } from "../../shared/json-schema/meter.ts";
import { violations } from "../../shared/json-schema/violations.ts";
import { render } from "../../shared/templates/template.ts";

/** Steps of rendering a prompt. */
const RENDER_STEPS = 250_000;

/** Returns the texts of a prompt with the arguments of a client. Throws `INVALID_INPUT`. */
export function promptResult(
  { description, systemPrompt = "", template, requires = {} }: PromptDefinition,
  given: JsonObject,
): GetPromptResult {
  const values = valuesOf(requires, given);
  const found = violations({ type: "object", ...requires }, values) ?? ["The schema cannot be checked"];
  if (found.length > 0) throw invalidArguments(found.join("; "));
  const meter = new Meter(RENDER_STEPS);
  const texts = [systemPrompt, template].map((text) => rendered(text, values, meter));
  const text = texts.filter((part) => part.trim() !== "").join("\n\n");
  return {
    ...(description === undefined ? {} : { description }),
    messages: [{ role: "user", content: { type: "text", text } }],
  };
}

/** Arguments are texts. Parses an argument as JSON if its schema has another type than text. */
function valuesOf({ properties }: JsonObject, given: JsonObject): JsonObject {
  const read = (name: string, text: JsonObject[string]) => {
    const schema = isJsonObject(properties) ? properties[name] : undefined;
    const isText = !isJsonObject(schema) || schema.type === undefined || schema.type === "string";
    return isText || typeof text !== "string" ? text : (parseJson(text) ?? text);
  };
  return Object.fromEntries(Object.entries(given).map(([name, text]) => [name, read(name, text)]));
}

function rendered(text: string, values: JsonObject, meter: Meter): string {
  try {
    return render(text, values, meter);
  } catch (error) {
    if (error instanceof ExpressionError) throw invalidArguments(error.message);
    if (error instanceof Spent)
      throw invalidArguments("The prompt takes too many steps with these arguments");
    throw error;
  }
}

function invalidArguments(problem: string): DramatisError {
  return invalid(`The arguments are not valid: ${problem}.`);
}
