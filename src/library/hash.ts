/** The identity of a definition's content. */
import type { ModelProfile } from "../adapters/types.ts";
import { canonicalJson, type Json } from "../shared/json.ts";
import type { Persona, ToolDefinition } from "./types.ts";

/** SHA-256 of the canonical JSON of a definition, as 64 hex digits. The order of keys does not matter. */
export async function contentHash(content: Persona | ToolDefinition | ModelProfile): Promise<string> {
  // SAFETY: a definition has passed its schema, and the schemas admit JSON values only.
  const text = canonicalJson(content as unknown as Json);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
