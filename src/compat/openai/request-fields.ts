/** Fields that the requests of both OpenAI protocols have, as schemas and in our words. */
import { z } from "zod";
import type { OutputSpec, ToolSpec } from "../../model/context.ts";
import type { JsonObject } from "../../shared/json.ts";
import { invalidInput } from "./input.ts";

/** Of what the agent's own model profile decides, or what makes no difference here. */
export const IGNORED = z.unknown().optional().meta({ description: "Accepted, and without effect." });

/** A field that may say only what holds anyway. */
export function only<Value extends boolean | number>(value: Value) {
  return z
    .literal(value, `Is not supported: must be ${value}, or left out.`)
    .nullish()
    .meta({ description: `Nothing but \`${value}\` is supported.` });
}

/** A field that cannot be honoured. */
export const REFUSED = z.null("Is not supported.").optional().meta({ description: "Is not supported." });

export const toolName = z
  .string()
  .regex(/^[a-zA-Z0-9_-]{1,64}$/, "Must be 1 to 64 letters, digits, underscores and hyphens.");

export const jsonSchema = z.record(z.string(), z.unknown()).meta({ description: "A JSON Schema." });

export const agentModel = z
  .string()
  .min(1)
  .max(200)
  .meta({ description: "The id of an agent.", example: "assistant" });

/** A function that the client runs. */
export interface FunctionFields {
  name: string;
  description?: string | null | undefined;
  parameters?: Record<string, unknown> | null | undefined;
}

export function toolSpec({ name, description, parameters }: FunctionFields): ToolSpec {
  // SAFETY: the body it stands in was JSON.
  const schema = (parameters ?? {}) as JsonObject;
  return { name, description: description ?? "", inputSchema: { type: "object", properties: {}, ...schema } };
}

export function outputSpec(
  name: string,
  schema: Record<string, unknown> | undefined,
  path: string,
): OutputSpec {
  if (schema === undefined) throw invalidInput(path, "Is required.");
  // SAFETY: as above.
  return { name, schema: schema as JsonObject };
}
