/** Names and ids as OpenAI's two APIs take them, the same way wherever they occur (OPENAI-1). Pure. */
import { unsupported } from "../native.ts";
import { fingerprint } from "../text.ts";
import type { ModelContext, ProviderId } from "../types.ts";

const MAX_NAME = 64;

/** 1 to 64 letters, digits, `_` and `-`. */
export function toName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, MAX_NAME) || "unnamed";
}

/** At most `limit` characters: the end of a longer text gives way to a fingerprint of the whole. */
export function fitLength(text: string, limit: number): string {
  return text.length <= limit ? text : `${text.slice(0, limit - 9).toWellFormed()}_${fingerprint(text)}`;
}

/** Throws `UNSUPPORTED` if a tool is offered that no model could call by its name. */
export function checkNames(provider: ProviderId, { tools }: ModelContext): void {
  const misnamed = tools.find(({ name }) => name !== toName(name));
  if (misnamed === undefined) return;
  const rule = `use 1 to ${MAX_NAME} letters, digits, "_" and "-"`;
  throw unsupported(provider, `a tool named "${misnamed.name}": ${rule}`);
}

/**
 * Throws `UNSUPPORTED` if the choice of tools asks for one that is not offered; `others` counts the tools that are
 * offered beside the context's own.
 */
export function checkChoice(provider: ProviderId, { tools, toolChoice }: ModelContext, others = 0): void {
  if (toolChoice === "required" && tools.length + others === 0) {
    throw unsupported(provider, "the order to call a tool where none is offered");
  }
  if (typeof toolChoice === "object" && tools.every(({ name }) => name !== toolChoice.name)) {
    throw unsupported(provider, `the order to call "${toolChoice.name}", which is not offered`);
  }
}
