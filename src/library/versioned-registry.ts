/**
 * The registry of a tenant: the deployed libraries, and those that the tenant's authors wrote.
 *
 * REG-3  Without a version a deployed definition is the one of the deployed code, whatever higher versions another
 *        deployment left; one by API is that with the highest version when it is resolved. A version means that version.
 * REG-4  The libraries of a tenant are seen by that tenant alone; the deployed ones by all, and they go before.
 * REG-5  The deployed definition can be pinned while the store is away: under version 0, which stands for a number that
 *        was not known; its hash says which one it is.
 * REG-6  A tool never promises more about repeating it than its deployed code does, whatever an older version said.
 */
import type { ModelProfile } from "../model/profile.ts";
import type { Persona, ToolDefinition } from "../protocol/definitions.ts";
import { DramatisError } from "../shared/errors.ts";
import type { DefinitionStore } from "./definition-store.ts";
import { strictest } from "./effects.ts";
import { type DefinitionKind, type DefinitionTypes, KIND_NAMES } from "./kinds.ts";
import { CODE_TENANT, type CodeNumbers, type PublishedCode } from "./published-code.ts";
import { formatReference, type LibraryReference, parseReference } from "./reference.ts";
import {
  type CodeDefinition,
  type CodeRegistry,
  type Registry,
  type Resolved,
  resolvedCode,
} from "./registry.ts";

/** What a registry looks things up in. */
export interface RegistrySources {
  code: CodeRegistry;
  published: PublishedCode;
  store: DefinitionStore;
}

/** For one request. */
export class VersionedRegistry implements Registry {
  readonly #numbers: CodeNumbers;

  constructor(
    private readonly sources: RegistrySources,
    private readonly tenant: string,
  ) {
    this.#numbers = sources.published.open(sources.store);
  }

  persona(reference: LibraryReference): Promise<Resolved<Persona>> {
    return this.#resolve("persona", reference);
  }

  async tool(reference: LibraryReference): Promise<Resolved<ToolDefinition>> {
    const { definition, ...pin } = await this.#resolve("tool", reference);
    const code = definition.task === undefined ? reference : parseReference(definition.task);
    const deployed = this.sources.code.toolCode(code.library, code.id)?.definition;
    const effect = strictest(definition.effect, deployed?.effect ?? "pure");
    return { ...pin, definition: { ...definition, effect } };
  }

  modelProfile(reference: LibraryReference): Promise<Resolved<ModelProfile>> {
    return this.#resolve("model-profile", reference);
  }

  async #resolve<Kind extends DefinitionKind>(
    kind: Kind,
    reference: LibraryReference,
  ): Promise<Resolved<DefinitionTypes[Kind]>> {
    const { code, store } = this.sources;
    const { library, id, version } = reference;
    const isCode = code.has(library);
    const deployed = isCode ? await code.deployed(kind, reference) : undefined;
    if (version === undefined && isCode) {
      if (deployed === undefined) throw code.absent(kind, reference);
      return resolvedCode(deployed, await this.#numberOrZero(deployed));
    }
    if (deployed !== undefined && (await this.#number(deployed)) === version) {
      return resolvedCode(deployed, version);
    }
    const tenant = isCode ? CODE_TENANT : this.tenant;
    const stored = await store.find({ tenant, library, kind, id }, version);
    if (stored === null) {
      throw new DramatisError(
        "NOT_FOUND",
        `There is no ${KIND_NAMES[kind]} "${formatReference(reference)}".`,
      );
    }
    return { library, id, version: stored.version, hash: stored.hash, definition: stored.definition };
  }

  async #number(deployed: CodeDefinition): Promise<number> {
    return (await this.#numbers.version(deployed)).version;
  }

  /** REG-5 */
  async #numberOrZero(deployed: CodeDefinition): Promise<number> {
    try {
      return await this.#number(deployed);
    } catch (error) {
      if (!(error instanceof DramatisError) || error.code !== "UNAVAILABLE") throw error;
      return 0;
    }
  }
}
