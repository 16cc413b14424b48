/**
 * The identity of a definition's content.
 *
 * HASH-1  All of the content counts, name and description too; what the registry adds (library, id, version, owner,
 *         times) and the order of keys do not.
 */
import { canonicalJson, type Json } from "../shared/json.ts";
import type { DefinitionKind, DefinitionTypes } from "./kinds.ts";

/** SHA-256 of the canonical JSON of a definition, as 64 hex digits. */
export async function contentHash(content: DefinitionTypes[DefinitionKind]): Promise<string> {
  // SAFETY: a definition has passed its schema, and the schemas admit JSON values only.
  const text = canonicalJson(content as unknown as Json);
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return [...new Uint8Array(digest)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
