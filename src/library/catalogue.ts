/**
 * The libraries of a tenant as the API shows them, and the door for what its authors add.
 *
 * LIBAPI-1  A tenant sees the deployed libraries and its own, and nothing of another tenant's.
 * LIBAPI-2  A library belongs to the author of its first definition; only they and administrators add to it. What is
 *           deployed is changed by a deployment.
 * LIBAPI-3  What is refused leaves nothing behind, no library either.
 * LIBAPI-4  Lists ascend by creation, what is deployed first, and go on after a cursor without loss or repetition.
 */
import { DramatisError } from "../shared/errors.ts";
import type { Page, PageOptions } from "../shared/page.ts";
import { mayAuthor, type Principal } from "../shared/principal.ts";
import { codePage, libraryPage } from "./catalogue-pages.ts";
import type { DefinitionKey, DefinitionStore } from "./definition-store.ts";
import { contentHash } from "./hash.ts";
import { completeDefinition, type DefinitionKind, type DefinitionTypes } from "./kinds.ts";
import { CODE_TENANT, type CodeNumbers, type PublishedCode } from "./published-code.ts";
import type { LibraryReference } from "./reference.ts";
import type { CodeDefinition, CodeRegistry } from "./registry.ts";
import {
  codeLibraryView,
  type DefinitionView,
  definitionPage,
  definitionView,
  type LibraryView,
  missingDefinition,
  storedLibraryView,
} from "./views.ts";

/** What a catalogue is made of. */
export interface CatalogueSources {
  code: CodeRegistry;
  published: PublishedCode;
  /** `null` where there is no database: then there are the deployed libraries only. */
  store: DefinitionStore | null;
}

/** For one request. Every method throws `UNAVAILABLE` while the store does not answer. */
export class Catalogue {
  readonly #numbers: CodeNumbers | null;

  constructor(private readonly sources: CatalogueSources) {
    const { store, published } = sources;
    this.#numbers = store === null ? null : published.open(store);
  }

  /** The deployed libraries, then the tenant's own. Throws `INVALID_INPUT` for a cursor that is none. */
  libraries(tenant: string, options: PageOptions = {}): Promise<Page<LibraryView>> {
    return libraryPage(this.sources, tenant, options);
  }

  /** Throws `NOT_FOUND`. */
  async library(tenant: string, id: string): Promise<LibraryView> {
    const { code, store } = this.sources;
    if (code.has(id)) return codeLibraryView(id);
    const found = await store?.library(tenant, id);
    if (found == null) throw new DramatisError("NOT_FOUND", `There is no library "${id}".`);
    return storedLibraryView(found);
  }

  /** The latest version of each. Throws `NOT_FOUND` for a library that there is not. */
  async list(
    tenant: string,
    kind: DefinitionKind,
    library: string,
    options: PageOptions = {},
  ): Promise<Page<DefinitionView>> {
    await this.library(tenant, library);
    const { code } = this.sources;
    if (!code.has(library)) {
      return definitionPage(library, await this.#store().list({ tenant, library, kind }, options));
    }
    const { items, ...rest } = codePage(await code.list(kind, library), options);
    return { items: await Promise.all(items.map((deployed) => this.#viewOfCode(deployed))), ...rest };
  }

  /** A version, or the latest. Throws `NOT_FOUND`. */
  async find(tenant: string, kind: DefinitionKind, reference: LibraryReference): Promise<DefinitionView> {
    const { code, store } = this.sources;
    const { library, version } = reference;
    if (code.has(library) && (version === undefined || store === null)) {
      const deployed = await code.deployed(kind, reference);
      if (deployed === undefined || (version ?? 1) !== 1) throw missingDefinition(kind, reference);
      return this.#viewOfCode(deployed);
    }
    const found = await store?.find(await this.#key(tenant, kind, reference), version);
    if (found == null) throw missingDefinition(kind, reference);
    return definitionView(library, found);
  }

  /** All versions. Throws `NOT_FOUND` for what has none. */
  async versions(
    tenant: string,
    kind: DefinitionKind,
    reference: LibraryReference,
    options: PageOptions = {},
  ): Promise<Page<DefinitionView>> {
    const { store } = this.sources;
    if (store === null) return { items: [await this.find(tenant, kind, reference)] };
    const key = await this.#key(tenant, kind, reference);
    const page = await store.versions(key, options);
    if (page.items.length === 0 && (await store.find(key)) === null) throw missingDefinition(kind, reference);
    return definitionPage(reference.library, page);
  }

  /**
   * Throws `FORBIDDEN` to those who may write to no library, `CONFLICT` for one that is deployed, `UNAVAILABLE` where nothing
   * can be kept.
   */
  checkWriter(principal: Principal, library: string): void {
    const { code } = this.sources;
    if (!mayAuthor(principal)) {
      throw new DramatisError("FORBIDDEN", "Only authors and administrators may add to libraries.");
    }
    if (code.has(library)) {
      throw new DramatisError(
        "CONFLICT",
        `The library "${library}" is part of the deployed code and changes by a deployment. Choose another id.`,
      );
    }
    this.#store();
  }

  /** The version with this content, made if there is none. Throws as `checkWriter` and as the store's `add` do. */
  async add<Kind extends DefinitionKind>(
    principal: Principal,
    kind: Kind,
    { library, id }: { library: string; id: string },
    written: DefinitionTypes[Kind],
    now: number,
  ): Promise<{ view: DefinitionView; created: boolean }> {
    this.checkWriter(principal, library);
    const definition = completeDefinition(kind, written);
    const { stored, created } = await this.#store().add(
      { tenant: principal.tenant, library, kind, id },
      {
        hash: await contentHash(definition),
        definition,
        owner: principal.subject,
        overrides: principal.roles.includes("admin"),
        now,
      },
    );
    return { view: definitionView(library, stored), created };
  }

  #store(): DefinitionStore {
    const { store } = this.sources;
    if (store !== null) return store;
    throw new DramatisError(
      "UNAVAILABLE",
      "Libraries by API need the D1 binding `DB`; add it to the Worker's configuration.",
    );
  }

  /** Where versions are kept; those of what is deployed are there afterwards. */
  async #key<Kind extends DefinitionKind>(
    tenant: string,
    kind: Kind,
    { library, id }: LibraryReference,
  ): Promise<DefinitionKey<Kind>> {
    const { code } = this.sources;
    if (!code.has(library)) return { tenant, library, kind, id };
    const deployed = await code.deployed(kind, { library, id });
    if (deployed !== undefined) await this.#numbers?.version(deployed);
    return { tenant: CODE_TENANT, library, kind, id };
  }

  async #viewOfCode(deployed: CodeDefinition): Promise<DefinitionView> {
    const { library, id, hash, definition } = deployed;
    const kept = await this.#numbers?.version(deployed);
    const createdAt = kept === undefined ? null : new Date(kept.createdAt).toISOString();
    return { library, id, version: kept?.version ?? 1, hash, definition, owner: null, createdAt };
  }
}
