/**
 * Where references are looked up: the libraries that are part of the deployed code.
 *
 * REG-1  One id of one kind names one definition: duplicates are refused when the registry is built.
 * REG-2  A definition that is handed out is the caller's own copy.
 */
import type { ModelProfile } from "../adapters/types.ts";
import { DramatisError } from "../shared/errors.ts";
import type { Defined, Library, Tool } from "./define.ts";
import { contentHash } from "./hash.ts";
import { completePersona } from "./persona.ts";
import { formatReference, type LibraryReference } from "./reference.ts";
import type { Persona, Pin, ToolDefinition } from "./types.ts";

/** A definition that was found, and exactly which one it is. */
export type Resolved<Definition> = Pin & { library: string; definition: Definition };

/** Looks up versioned definitions. What does not exist is `NOT_FOUND`, naming it. */
export interface Registry {
  persona(reference: LibraryReference): Promise<Resolved<Persona>>;
  tool(reference: LibraryReference): Promise<Resolved<ToolDefinition>>;
  modelProfile(reference: LibraryReference): Promise<Resolved<ModelProfile>>;
}

/** The executable half of the deployed tools. */
export interface ToolCodes {
  /** `undefined` if this deployment has no such tool. */
  toolCode(library: string, id: string): Tool | undefined;
}

/** The registry of an application's own libraries. What is defined in code has version 1. */
export class CodeRegistry implements Registry, ToolCodes {
  readonly #libraries: ReadonlyMap<string, Library>;
  /** Finished hashes only: a promise made in one request must not be awaited in another. */
  readonly #hashes = new WeakMap<object, string>();

  constructor(libraries: readonly Library[]) {
    const byId = new Map<string, Library>();
    for (const library of libraries) {
      if (byId.has(library.id)) {
        throw new DramatisError(
          "INVALID_INPUT",
          `Two libraries have the id "${library.id}". Rename one of them.`,
        );
      }
      byId.set(library.id, library);
    }
    this.#libraries = byId;
  }

  async persona(reference: LibraryReference): Promise<Resolved<Persona>> {
    const found = this.#find(reference, "persona", (library) => library.personas);
    return this.#resolved(reference, found.definition, completePersona(found.definition));
  }

  async tool(reference: LibraryReference): Promise<Resolved<ToolDefinition>> {
    const { definition } = this.#find(reference, "tool", (library) => library.tools);
    return this.#resolved(reference, definition, definition);
  }

  async modelProfile(reference: LibraryReference): Promise<Resolved<ModelProfile>> {
    const { definition } = this.#find(reference, "model profile", (library) => library.modelProfiles);
    return this.#resolved(reference, definition, definition);
  }

  toolCode(library: string, id: string): Tool | undefined {
    return this.#libraries.get(library)?.tools.find((tool) => tool.id === id);
  }

  #find<Definition>(
    reference: LibraryReference,
    kind: string,
    of: (library: Library) => readonly Defined<Definition>[],
  ): Defined<Definition> {
    const library = this.#libraries.get(reference.library);
    if (library === undefined) {
      throw notFound(`There is no library "${reference.library}"`, [...this.#libraries.keys()]);
    }
    const found = of(library).find((candidate) => candidate.id === reference.id);
    if (found === undefined) {
      throw notFound(
        `Library "${reference.library}" has no ${kind} "${reference.id}"`,
        of(library).map(({ id }) => id),
      );
    }
    if (reference.version !== undefined && reference.version !== 1) {
      throw notFound(`There is no ${kind} "${formatReference(reference)}"`, ["version 1"]);
    }
    return found;
  }

  async #resolved<Definition extends Persona | ToolDefinition | ModelProfile>(
    { library, id }: LibraryReference,
    key: object,
    definition: Definition,
  ): Promise<Resolved<Definition>> {
    const hash = this.#hashes.get(key) ?? (await contentHash(definition));
    this.#hashes.set(key, hash);
    return { library, id, version: 1, hash, definition: structuredClone(definition) };
  }
}

function notFound(what: string, known: readonly string[]): DramatisError {
  return new DramatisError("NOT_FOUND", `${what}. It is one of: ${known.join(", ") || "none"}.`);
}
