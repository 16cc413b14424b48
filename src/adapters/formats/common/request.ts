/** Parts that the requests of all formats share: parameters, the list of messages, tools. Pure. */
import type { ModelContext } from "../../../model/context.ts";
import type { ModelProfile, ProviderId } from "../../../model/profile.ts";
import { DramatisError, invalid } from "../../../shared/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { NAME_LENGTH, plainName } from "./names.ts";

/** Returns a profile's parameters without the `reserved` keys; a parameter that is `null` is left out. */
export function settings(parameters: JsonObject | undefined, reserved: readonly string[]): JsonObject {
  const entries = Object.entries(parameters ?? {});
  return Object.fromEntries(entries.filter(([key, value]) => value !== null && !reserved.includes(key)));
}

/** Returns the list under `key` of a request. Throws `INVALID_INPUT` if it is missing. */
export function requireList(request: JsonObject, key: string): readonly Json[] {
  const list = request[key];
  if (Array.isArray(list)) return list;
  throw invalid(`A model request must have an array \`${key}\` to be continued.`);
}

/** Appends to the list `key` of a request; every other key keeps its value and its place. */
export function continued(request: JsonObject, key: string, later: readonly Json[]): JsonObject {
  return { ...request, [key]: [...requireList(request, key), ...later] };
}

/** Builds the error for a context that a provider's format cannot express; `what` completes "… does not accept". */
export function unsupported(provider: ProviderId, what: string): DramatisError {
  return new DramatisError("UNSUPPORTED", `The provider "${provider}" does not accept ${what}.`);
}

/** Returns the provider's own tools, from the profile's parameter `tools`; throws `UNSUPPORTED` if that is not a list. */
export function ownTools({ provider, parameters }: ModelProfile): readonly Json[] {
  const own = parameters?.tools ?? [];
  if (Array.isArray(own)) return own;
  throw unsupported(provider, "a parameter `tools` that is not a list");
}

/** Throws `UNSUPPORTED` for a tool with a name that the model could not write in a call. */
export function checkNames(provider: ProviderId, { tools }: ModelContext, limit = NAME_LENGTH): void {
  const misnamed = tools.find(({ name }) => name !== plainName(name, limit));
  if (misnamed === undefined) return;
  const rule = `use 1 to ${limit} letters, digits, "_" and "-"`;
  throw unsupported(provider, `a tool named "${misnamed.name}": ${rule}`);
}

/** Throws `UNSUPPORTED` if the tool choice requires a tool that is not offered and not in the provider's `own`. */
export function checkChoice(
  provider: ProviderId,
  { tools, toolChoice }: { tools: readonly { name: string }[]; toolChoice: ModelContext["toolChoice"] },
  own: readonly Json[] = [],
): void {
  if (toolChoice === "required" && tools.length + own.length === 0)
    throw unsupported(provider, "a forced tool call without offered tools");
  if (typeof toolChoice !== "object") return;
  const names = [...tools, ...own.filter(isJsonObject)].map(({ name }) => name);
  if (!names.includes(toolChoice.name))
    throw unsupported(provider, `a forced call of "${toolChoice.name}", which is not offered`);
}

/**
 * Returns a request with the members that choose among its tools. A request without tools stays as it is. Throws `UNSUPPORTED` as
 * `checkChoice` does. `names` are the names of the offered tools.
 */
export function withChoice(
  provider: ProviderId,
  request: JsonObject,
  toolChoice: ModelContext["toolChoice"],
  { names, members }: { names: readonly unknown[]; members: JsonObject },
): JsonObject {
  checkChoice(provider, { tools: names.map((name) => ({ name: String(name) })), toolChoice });
  return names.length === 0 ? request : { ...request, ...members };
}
