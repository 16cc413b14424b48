/** What the API shows of libraries. */
import { DramatisError } from "../shared/errors.ts";
import type { Page } from "../shared/page.ts";
import type { StoredDefinition, StoredLibrary } from "./definition-store.ts";
import { type DefinitionKind, type DefinitionTypes, KIND_NAMES } from "./kinds.ts";
import { formatReference, type LibraryReference } from "./reference.ts";

/** One version of a definition. */
export interface DefinitionView {
  library: string;
  id: string;
  version: number;
  /** SHA-256 of the canonical JSON of `definition`, in hex. */
  hash: string;
  definition: DefinitionTypes[DefinitionKind];
  /** Who wrote it; `null` for what a deployment brought along. */
  owner: string | null;
  /** ISO 8601 UTC; `null` where nothing is kept. */
  createdAt: string | null;
}

export interface LibraryView {
  id: string;
  /** Where its definitions are written. */
  source: "code" | "api";
  /** Who made it; `null` for a deployed one, as the time. */
  owner: string | null;
  /** ISO 8601 UTC. */
  createdAt: string | null;
}

export function definitionView(library: string, stored: StoredDefinition): DefinitionView {
  const { id, version, hash, definition, owner, createdAt } = stored;
  const time = new Date(createdAt).toISOString();
  return { library, id, version, hash, definition, owner: owner === "" ? null : owner, createdAt: time };
}

export function definitionPage(
  library: string,
  { items, ...rest }: Page<StoredDefinition>,
): Page<DefinitionView> {
  return { items: items.map((stored) => definitionView(library, stored)), ...rest };
}

export function storedLibraryView({ id, owner, createdAt }: StoredLibrary): LibraryView {
  return { id, source: "api", owner, createdAt: new Date(createdAt).toISOString() };
}

export function codeLibraryView(id: string): LibraryView {
  return { id, source: "code", owner: null, createdAt: null };
}

/** The `NOT_FOUND` of a definition, or of one of its versions. */
export function missingDefinition(kind: DefinitionKind, reference: LibraryReference): DramatisError {
  return new DramatisError("NOT_FOUND", `There is no ${KIND_NAMES[kind]} "${formatReference(reference)}".`);
}
