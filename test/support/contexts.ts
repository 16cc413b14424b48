/** What a format is given, and how it refuses. */
import { expect } from "vitest";
import type { ModelContext } from "../../src/adapters/types.ts";

export function context(given: Partial<ModelContext> = {}): ModelContext {
  return { systemInstructions: [], messages: [], tools: [], toolChoice: "auto", ...given };
}

/** `what` stands in the message of the refusal. */
export function expectUnsupported(build: () => unknown, what: RegExp | string): void {
  const message = typeof what === "string" ? expect.stringContaining(what) : expect.stringMatching(what);
  expect(build).toThrowError(expect.objectContaining({ code: "UNSUPPORTED", message }));
}
