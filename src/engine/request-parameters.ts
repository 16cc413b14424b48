/** Reads chat requests: separates neutral parameters from provider parameters. Pure. */
import { z } from "zod";
import type { ModelContext } from "../model/context.ts";
import { defined } from "../shared/defined.ts";
import { isJson, isJsonObject, type JsonObject } from "../shared/json.ts";
import { validate } from "../shared/validation.ts";
import { leadingInstructions } from "./history.ts";
import { toContextMessages } from "./messages.ts";
import type { ProviderChatRequest } from "./provider-adapter.ts";

const jsonObject = z.custom<JsonObject>(
  (value) => isJsonObject(value) && isJson(value),
  "Must be a JSON object.",
);

/** Parameters with the same meaning for every provider. */
const neutral = z.looseObject({
  tools: z
    .array(z.strictObject({ name: z.string().min(1), description: z.string(), inputSchema: jsonObject }))
    .default([]),
  toolChoice: z
    .union([z.enum(["auto", "none", "required"]), z.strictObject({ name: z.string().min(1) })])
    .default("auto"),
  output: z.strictObject({ name: z.string().regex(/^[\w-]{1,64}$/), schema: jsonObject }).optional(),
  cache: z.strictObject({ key: z.string().min(1), stableMessages: z.int().min(0) }).optional(),
});

export interface ReadRequest {
  context: ModelContext;
  parameters: JsonObject;
}

/**
 * Reads a request. The parameters `tools`, `toolChoice`, `output` and `cache` have the form of `ModelContext`; all others
 * belong to the provider. Throws `INVALID_INPUT`.
 */
export function readRequest({ messages, parameters = {} }: ProviderChatRequest): ReadRequest {
  const what = "The chat request";
  const { tools, toolChoice, output, cache, ...own } = validate(neutral, parameters, "/parameters", what);
  const leading = leadingInstructions(messages);
  const instructions = messages.slice(0, leading).flatMap(toContextMessages);
  return {
    parameters: validate(jsonObject, own, "/parameters", what),
    context: {
      systemInstructions: instructions.map(({ content }) => content),
      messages: messages.slice(leading).flatMap(toContextMessages),
      ...{ tools, toolChoice },
      ...defined({ output, cache }),
    },
  };
}
