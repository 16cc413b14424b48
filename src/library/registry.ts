/**
 * Where references are looked up, and the part of it that is deployed code.
 *
 * REG-1  One id of one kind names one definition: duplicates are refused when the registry is built.
 * REG-2  A definition that is handed out is the caller's own copy.
 */
import type { ModelProfile } from "../model/profile.ts";
import type { Persona, Pin, ToolDefinition } from "../protocol/definitions.ts";
import { DramatisError } from "../shared/errors.ts";
import type { Defined, Library, Tool } from "./define.ts";
import { contentHash } from "./hash.ts";
import { completeDefinition, type DefinitionKind, type DefinitionTypes, KIND_NAMES } from "./kinds.ts";
import { formatReference, type LibraryReference } from "./reference.ts";

/** A definition that was found, and exactly which one it is. */
export type Resolved<Definition> = Pin & { library: string; definition: Definition };

/**
 * Looks up versioned definitions. What does not exist is `NOT_FOUND`, naming it; what cannot be told for the moment is
 * `UNAVAILABLE`.
 */
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

/** A definition that is part of the deployed code, its settings written out. */
export interface CodeDefinition<Kind extends DefinitionKind = DefinitionKind> {
  kind: Kind;
  library: string;
  id: string;
  hash: string;
  definition: DefinitionTypes[Kind];
}

/** The definitions of an application's own libraries. On its own, where nothing is kept, each has version 1. */
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

  /** Ids of the deployed libraries, as they were given. */
  get libraryIds(): string[] {
    return [...this.#libraries.keys()];
  }

  has(library: string): boolean {
    return this.#libraries.has(library);
  }

  persona(reference: LibraryReference): Promise<Resolved<Persona>> {
    return this.#first("persona", reference);
  }

  tool(reference: LibraryReference): Promise<Resolved<ToolDefinition>> {
    return this.#first("tool", reference);
  }

  modelProfile(reference: LibraryReference): Promise<Resolved<ModelProfile>> {
    return this.#first("model-profile", reference);
  }

  toolCode(library: string, id: string): Tool | undefined {
    return this.#libraries.get(library)?.tools.find((tool) => tool.id === id);
  }

  /** What the deployed code says of it, whatever version is asked for; `undefined` if it says nothing. */
  async deployed<Kind extends DefinitionKind>(
    kind: Kind,
    { library, id }: Pick<LibraryReference, "library" | "id">,
  ): Promise<CodeDefinition<Kind> | undefined> {
    const found = this.#of(kind, library).find((candidate) => candidate.id === id);
    return found === undefined ? undefined : this.#complete(kind, library, found);
  }

  /** All of one kind, as the library lists them. */
  list<Kind extends DefinitionKind>(kind: Kind, library: string): Promise<CodeDefinition<Kind>[]> {
    return Promise.all(this.#of(kind, library).map((found) => this.#complete(kind, library, found)));
  }

  /** Everything there is. */
  async all(): Promise<CodeDefinition[]> {
    const lists = this.libraryIds.flatMap((library) => [
      this.list("persona", library),
      this.list("tool", library),
      this.list("model-profile", library),
    ]);
    return (await Promise.all<CodeDefinition[]>(lists)).flat();
  }

  /** The `NOT_FOUND` of what the deployed code does not have: it says what it has. */
  absent(kind: DefinitionKind, reference: LibraryReference): DramatisError {
    if (!this.has(reference.library))
      return notFound(`There is no library "${reference.library}"`, this.libraryIds);
    const ids = this.#of(kind, reference.library).map(({ id }) => id);
    return notFound(`Library "${reference.library}" has no ${KIND_NAMES[kind]} "${reference.id}"`, ids);
  }

  async #first<Kind extends DefinitionKind>(
    kind: Kind,
    reference: LibraryReference,
  ): Promise<Resolved<DefinitionTypes[Kind]>> {
    const deployed = await this.deployed(kind, reference);
    if (deployed === undefined) throw this.absent(kind, reference);
    if (reference.version !== undefined && reference.version !== 1) {
      throw notFound(`There is no ${KIND_NAMES[kind]} "${formatReference(reference)}"`, ["version 1"]);
    }
    return resolvedCode(deployed, 1);
  }

  #of<Kind extends DefinitionKind>(kind: Kind, id: string): readonly Defined<DefinitionTypes[Kind]>[] {
    const library = this.#libraries.get(id);
    if (library === undefined) return [];
    const kinds: { [Kind in DefinitionKind]: readonly Defined<DefinitionTypes[Kind]>[] } = {
      persona: library.personas,
      tool: library.tools,
      "model-profile": library.modelProfiles,
    };
    return kinds[kind];
  }

  async #complete<Kind extends DefinitionKind>(
    kind: Kind,
    library: string,
    found: Defined<DefinitionTypes[Kind]>,
  ): Promise<CodeDefinition<Kind>> {
    const definition = structuredClone(completeDefinition(kind, found.definition));
    const hash = this.#hashes.get(found.definition) ?? (await contentHash(definition));
    this.#hashes.set(found.definition, hash);
    return { kind, library, id: found.id, hash, definition };
  }
}

/** A deployed definition under the number that it has. */
export function resolvedCode<Kind extends DefinitionKind>(
  { library, id, hash, definition }: CodeDefinition<Kind>,
  version: number,
): Resolved<DefinitionTypes[Kind]> {
  return { library, id, version, hash, definition };
}

function notFound(what: string, known: readonly string[]): DramatisError {
  return new DramatisError("NOT_FOUND", `${what}. It is one of: ${known.join(", ") || "none"}.`);
}
