/** What a chat request says beside its messages: what the runtime understands, and what is the provider's own. Pure. */
import { z } from "zod";
import type { ModelContext, ModelProfile } from "../adapters/types.ts";
import type { JsonObject } from "../shared/json.ts";
import { isJson } from "../shared/json.ts";
import { validate } from "../shared/validation.ts";
import { leadingInstructions } from "./history.ts";
import { toContextMessages } from "./messages.ts";
import type { ProviderChatRequest } from "./provider-adapter.ts";

const jsonObject = z.custom<JsonObject>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value) && isJson(value),
  "Must be a JSON object.",
);
const json = z.unknown().refine(isJson, "Must be JSON.");

/** The names that mean the same for every provider. */
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

/** A request in the terms of the format adapters. */
export interface ReadRequest {
  profile: ModelProfile;
  context: ModelContext;
}

/**
 * The request with the profile it is sent by. Of its `parameters`, `tools`, `toolChoice`, `output` and `cache` are as in
 * `ModelContext`; all others are the provider's own, and win over the profile's. Throws `INVALID_INPUT`.
 */
export function readRequest(profile: ModelProfile, request: ProviderChatRequest): ReadRequest {
  const { tools, toolChoice, output, cache, ...own } = validate(
    neutral,
    request.parameters ?? {},
    "/parameters",
    "The chat request",
  );
  const parameters = validate(z.record(z.string(), json), own, "/parameters", "The chat request");
  const leading = leadingInstructions(request.messages);
  const instructions = request.messages.slice(0, leading).flatMap(toContextMessages);
  return {
    profile: {
      ...profile,
      modelId: request.model,
      // SAFETY: every value was checked to be JSON.
      parameters: { ...profile.parameters, ...(parameters as JsonObject) },
    },
    context: {
      systemInstructions: instructions.map(({ content }) => content),
      messages: request.messages.slice(leading).flatMap(toContextMessages),
      ...{ tools, toolChoice },
      ...(output === undefined ? {} : { output }),
      ...(cache === undefined ? {} : { cache }),
    },
  };
}
