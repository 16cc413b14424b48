/** Which tools a request offers, and which of them it orders the model to call. Pure. */

import type { ModelContext } from "../../../model/context.ts";
import type { ModelProfile, ProviderId } from "../../../model/profile.ts";
import { isJsonObject, type Json } from "../../../shared/json.ts";
import { plainName } from "./names.ts";
import { unsupported } from "./native.ts";

/** Tools that the provider runs itself, from the profile's parameter `tools`; throws `UNSUPPORTED` if that is no list. */
export function ownTools({ provider, parameters }: ModelProfile): readonly Json[] {
  const own = parameters?.tools ?? [];
  if (Array.isArray(own)) return own;
  throw unsupported(provider, "a parameter `tools` that is not a list");
}

/** Throws `UNSUPPORTED` if a tool is offered under a name that its model could not call it by. */
export function checkNames(provider: ProviderId, { tools }: ModelContext, limit: number): void {
  const misnamed = tools.find(({ name }) => name !== plainName(name, limit));
  if (misnamed === undefined) return;
  const rule = `use 1 to ${limit} letters, digits, "_" and "-"`;
  throw unsupported(provider, `a tool named "${misnamed.name}": ${rule}`);
}

/** Throws `UNSUPPORTED` if the choice of tools asks for one that is not offered, `own` tools of the provider included. */
export function checkChoice(
  provider: ProviderId,
  { tools, toolChoice }: ModelContext,
  own: readonly Json[] = [],
): void {
  if (toolChoice === "required" && tools.length + own.length === 0) {
    throw unsupported(provider, "the order to call a tool where none is offered");
  }
  if (typeof toolChoice !== "object") return;
  const names = [...tools, ...own.filter(isJsonObject)].map(({ name }) => name);
  if (!names.includes(toolChoice.name)) {
    throw unsupported(provider, `the order to call "${toolChoice.name}", which is not offered`);
  }
}
