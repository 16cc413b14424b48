/** The interface that the registry's two sources share: the deployed code, and the database that authors write to. */
import { z } from "zod";
import { ids, time } from "../../protocol/scalars.ts";
import type { Listed, ListRange, Page, PageOptions } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import type { DefinitionKind, DefinitionTypes } from "../definitions/definition.ts";
import type { DefinitionKey, LibraryReference } from "../definitions/reference.ts";

/** A definition and the hash of its content, before it has a version number. */
export interface UnversionedDefinition<Kind extends DefinitionKind = DefinitionKind> {
  kind: Kind;
  library: string;
  id: string;
  /** SHA-256 of the canonical JSON of `definition`, in hex. */
  hash: string;
  definition: DefinitionTypes[Kind];
}

export interface DefinitionVersion<Kind extends DefinitionKind = DefinitionKind>
  extends Omit<UnversionedDefinition<Kind>, "kind"> {
  version: number;
  /** The author of this version; `null` for deployed definitions. */
  owner: string | null;
  /** ISO 8601 UTC; `null` for deployed definitions without a database. */
  createdAt: string | null;
}

export type PublishedVersion = Pick<DefinitionVersion, "version" | "createdAt">;

/** A library without its contents. */
export const libraryView = z
  .strictObject({
    id: ids.library,
    source: z
      .enum(["code", "api"])
      .describe("`code`: part of the deployed Worker. `api`: written by authors of the tenant."),
    owner: z
      .string()
      .nullable()
      .describe("The author of the first definition; `null` for deployed libraries."),
    /** `null` for deployed libraries. */
    createdAt: time.nullable(),
  })
  .meta({ id: "Library" });

export type LibraryView = z.infer<typeof libraryView>;

/**
 * Definitions to read. Every method throws `UNAVAILABLE`, retriable, while the database does not answer. Lists ascend by
 * creation, and throw `INVALID_INPUT` for an invalid cursor.
 */
export interface DefinitionSource {
  /** Returns `null` if the library does not exist. */
  library(id: string): Promise<LibraryView | null>;
  /** Returns the libraries of a range, and one more if there is one: it shows that another page follows. */
  libraries(range: ListRange): Promise<Listed<LibraryView>[]>;
  /** Returns the named version, or the latest version if the reference has no version. Returns `null` if it does not exist. */
  find<Kind extends DefinitionKind>(
    kind: Kind,
    reference: LibraryReference,
  ): Promise<DefinitionVersion<Kind> | null>;
  list<Kind extends DefinitionKind>(
    kind: Kind,
    library: string,
    options?: PageOptions,
  ): Promise<Page<DefinitionVersion<Kind>>>;
  /** Returns all versions of a definition; no items if it does not exist. */
  versions<Kind extends DefinitionKind>(
    kind: Kind,
    key: DefinitionKey,
    options?: PageOptions,
  ): Promise<Page<DefinitionVersion<Kind>>>;
}

export interface DefinitionStore extends DefinitionSource {
  /** Returns the ids of a library's definitions without their content, the first `limit` by creation. */
  ids(kind: DefinitionKind, library: string, limit: number): Promise<string[]>;
  /**
   * Returns the version with this content. If it does not exist, adds it. The author of a library's first definition
   * owns the library. Throws `FORBIDDEN` for other authors, except administrators. Throws `CONFLICT`
   * if the definition has the maximum number of versions, or if the id of a new library is too similar to another id
   * (LIBAPI-5).
   */
  add<Kind extends DefinitionKind>(
    definition: UnversionedDefinition<Kind>,
    author: Principal,
  ): Promise<{ version: DefinitionVersion<Kind>; created: boolean }>;
  /** Returns the versions with this content, in the given order. Adds missing versions. */
  publish(definitions: readonly UnversionedDefinition[]): Promise<PublishedVersion[]>;
}

/** The tenant of the deployed definitions in the database. Names of other tenants do not begin with a colon. */
export const CODE_TENANT = ":code";
