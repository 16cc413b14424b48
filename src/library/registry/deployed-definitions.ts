/** The deployed definitions as a source: content from the code, version numbers from the database. */
import {
  type Listed,
  type ListRange,
  listPage,
  listRange,
  type Page,
  type PageOptions,
} from "../../shared/page.ts";
import { builtIn } from "../built-in/built-in.ts";
import type { DefinitionKind } from "../definitions/definition.ts";
import type { DefinitionKey, LibraryReference } from "../definitions/reference.ts";
import type {
  DefinitionSource,
  DefinitionStore,
  DefinitionVersion,
  LibraryView,
  UnversionedDefinition,
} from "./definition-source.ts";
import { type DeployedCode, nameOf } from "./deployed-code.ts";

/** Make one per request. Without a store every definition has version 1. */
export class DeployedDefinitions implements DefinitionSource {
  #published: ReturnType<DeployedCode["published"]> | undefined;

  constructor(
    private readonly code: DeployedCode,
    private readonly store: DefinitionStore | null,
  ) {}

  async library(id: string): Promise<LibraryView | null> {
    return this.code.has(id) ? libraryView(id) : null;
  }

  async libraries(range: ListRange): Promise<Listed<LibraryView>[]> {
    return within(range, this.code.libraryIds.map(libraryView));
  }

  async find<Kind extends DefinitionKind>(
    kind: Kind,
    reference: LibraryReference,
  ): Promise<DefinitionVersion<Kind> | null> {
    const { library, id, version } = reference;
    const deployed = await this.code.definition(kind, reference);
    const found = deployed === undefined ? null : await this.#withVersion(deployed);
    if (version === undefined || found?.version === version) return found;
    return this.store === null ? null : this.store.find(kind, { library, id, version });
  }

  async list<Kind extends DefinitionKind>(
    kind: Kind,
    library: string,
    options: PageOptions = {},
  ): Promise<Page<DefinitionVersion<Kind>>> {
    const range = listRange(options);
    const { items, ...rest } = listPage(
      within(range, await this.code.definitions(kind, library)),
      range.limit,
    );
    return { items: await Promise.all(items.map((deployed) => this.#withVersion(deployed))), ...rest };
  }

  async versions<Kind extends DefinitionKind>(
    kind: Kind,
    { library, id }: DefinitionKey,
    options?: PageOptions,
  ): Promise<Page<DefinitionVersion<Kind>>> {
    const found = await this.find(kind, { library, id });
    if (this.store === null) return { items: found === null ? [] : [found] };
    return this.store.versions(kind, { library, id }, options);
  }

  async #withVersion<Kind extends DefinitionKind>(
    deployed: UnversionedDefinition<Kind>,
  ): Promise<DefinitionVersion<Kind>> {
    const { kind: _, ...content } = deployed;
    if (this.store === null || deployed.library === builtIn.id)
      return { ...content, version: 1, owner: null, createdAt: null };
    this.#published ??= this.code.published(this.store);
    const published = (await this.#published).get(nameOf(deployed));
    if (published === undefined) throw new Error(`${nameOf(deployed)} was not published.`);
    return { ...content, ...published, owner: null };
  }
}

function libraryView(id: string): LibraryView {
  return { id, source: "code", owner: null, createdAt: null };
}

/**
 * Returns the items of a range, and one more if there is one. In place of a time of creation, deployed items have negative
 * numbers: they keep the order of the code, and precede everything that authors wrote.
 */
function within<Item extends { id: string }>(
  { order, limit, after }: ListRange,
  items: readonly Item[],
): Listed<Item>[] {
  const keyOf = (index: number, id: string) => ({ createdAt: index - items.length, id });
  const listed = items.map((item, index) => ({ key: keyOf(index, item.id), item }));
  const following =
    order === "asc"
      ? listed.filter(({ key }) => key.createdAt > after.createdAt)
      : listed.filter(({ key }) => key.createdAt < after.createdAt).reverse();
  return following.slice(0, limit + 1);
}
