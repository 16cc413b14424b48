/**
 * The ban of parallel tool calls: its place in profiles and requests. Pure.
 *
 * SINGLECALL-1  A message may ban parallel calls. Providers with a parameter for the ban get it. If a reply has several calls all the same,
 *               its first call runs, and each other call gets an error.
 */
import { isJsonObject, type JsonObject } from "../shared/json.ts";
import type { ModelProfile, ProviderId } from "./profile.ts";

export function withSingleCalls(profile: ModelProfile): ModelProfile {
  return { ...profile, parameters: banned(profile.parameters ?? {}, profile) };
}

/** Returns a provider's own request with the ban. A request without tools stays as it is. */
export function requestWithSingleCalls(request: JsonObject, profile: { provider: ProviderId }): JsonObject {
  const { tools } = request;
  return Array.isArray(tools) && tools.length > 0 ? banned(request, profile) : request;
}

function banned(parameters: JsonObject, { provider }: { provider: ProviderId }): JsonObject {
  if (provider === "openai" || provider === "openai-responses")
    return { ...parameters, parallel_tool_calls: false };
  if (provider !== "anthropic") return parameters;
  const { tool_choice: given } = parameters;
  const choice = { type: "auto", ...(isJsonObject(given) ? given : {}) };
  if (choice.type === "none") return parameters;
  return { ...parameters, tool_choice: { ...choice, disable_parallel_tool_use: true } };
}
