/**
 * Errors for definitions that a registry does not contain.
 *
 * REG-7  The error for an unknown id lists at most 20 existing ids, the most similar first. A registry queries the
 *        database for ids once, for the first such error. The query reads no definitions.
 */
import { type DramatisError, notFound } from "../../shared/errors.ts";
import { listIds, MAX_LISTED_IDS } from "../../shared/known-ids.ts";
import { type DefinitionKind, kindName } from "../definitions/definition.ts";
import { formatReference, type LibraryReference } from "../definitions/reference.ts";
import type { DefinitionStore } from "./definition-source.ts";
import type { DeployedCode } from "./deployed-code.ts";

/** Make one per registry. */
export class MissingDefinitions {
  /** The ids of the library of the first missing authored id. A request has one answer, so it needs no other list. */
  #listed: { kind: DefinitionKind; library: string; ids: Promise<string[]> } | undefined;

  constructor(
    private readonly code: DeployedCode,
    private readonly authored: DefinitionStore | null,
  ) {}

  /** Returns the error for a definition that does not exist (REG-7). */
  async definition(kind: DefinitionKind, reference: LibraryReference): Promise<DramatisError> {
    const { library, id, version } = reference;
    const nothing = `There is no ${kindName(kind)} "${formatReference(reference)}".`;
    if (version !== undefined) return notFound(nothing);
    const isDeployed = this.code.has(library);
    const ids = isDeployed ? this.code.ids(kind, library) : await this.#authoredIds(kind, library);
    if (ids.length === 0 && !isDeployed) return notFound(`${nothing} ${this.#knownLibraries(library)}`);
    return notFound(`Library "${library}" has no ${kindName(kind)} "${id}". It has: ${listIds(id, ids)}.`);
  }

  /** Returns ids of the library if the first error is about it, otherwise an empty list (REG-7). */
  async #authoredIds(kind: DefinitionKind, library: string): Promise<string[]> {
    if (this.authored === null) return [];
    this.#listed ??= { kind, library, ids: this.authored.ids(kind, library, MAX_LISTED_IDS + 1) };
    const listed = this.#listed;
    // Errors about other libraries wait, too: otherwise one of them would overtake the first, and be the answer.
    const ids = await listed.ids;
    return listed.kind === kind && listed.library === library ? ids : [];
  }

  library(id: string): DramatisError {
    return notFound(`There is no library "${id}". ${this.#knownLibraries(id)}`);
  }

  #knownLibraries(wanted: string): string {
    return `Deployed libraries: ${listIds(wanted, this.code.libraryIds)}.`;
  }
}
