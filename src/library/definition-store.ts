/** Where versions of definitions are kept: a port. */
import type { Page, PageOptions } from "../shared/page.ts";
import type { DefinitionKind, DefinitionTypes } from "./kinds.ts";
import type { CodeDefinition } from "./registry.ts";

/** Which definition, of all its versions. */
export interface DefinitionKey<Kind extends DefinitionKind = DefinitionKind> {
  tenant: string;
  library: string;
  kind: Kind;
  id: string;
}

/** One version of a definition. */
export interface StoredDefinition<Kind extends DefinitionKind = DefinitionKind> {
  id: string;
  version: number;
  hash: string;
  /** Who wrote this version; empty where that was a deployment. */
  owner: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
  definition: DefinitionTypes[Kind];
}

/** A library that was made by its first definition. */
export interface StoredLibrary {
  id: string;
  owner: string;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/** Under which number a deployed definition is kept. */
export interface PublishedVersion {
  version: number;
  /** Milliseconds since the epoch. */
  createdAt: number;
}

/** A version to be. */
export interface NewVersion {
  hash: string;
  definition: DefinitionTypes[DefinitionKind];
  /** The author's name. */
  owner: string;
  /** May write into the libraries of others. */
  overrides: boolean;
  /** Milliseconds since the epoch. */
  now: number;
}

/** Every method throws `UNAVAILABLE`, retriable, when the store does not answer. */
export interface DefinitionStore {
  /** The same object for the same database. */
  readonly identity: object;
  /** A version, or the highest; `null` if there is none. */
  find<Kind extends DefinitionKind>(
    key: DefinitionKey<Kind>,
    version?: number,
  ): Promise<StoredDefinition<Kind> | null>;
  /**
   * The version with this content, which is made if there is none; the library is its first author's. Throws `FORBIDDEN`
   * in a library of somebody else, `CONFLICT` where the definition has all the versions that it may have.
   */
  add<Kind extends DefinitionKind>(
    key: DefinitionKey<Kind>,
    version: NewVersion,
  ): Promise<{ stored: StoredDefinition<Kind>; created: boolean }>;
  /** The latest version of each, ascending by creation of the first. `INVALID_INPUT` for a cursor that is none. */
  list<Kind extends DefinitionKind>(
    key: Omit<DefinitionKey<Kind>, "id">,
    options?: PageOptions,
  ): Promise<Page<StoredDefinition<Kind>>>;
  /** As `list`: the versions of one. */
  versions<Kind extends DefinitionKind>(
    key: DefinitionKey<Kind>,
    options?: PageOptions,
  ): Promise<Page<StoredDefinition<Kind>>>;
  library(tenant: string, id: string): Promise<StoredLibrary | null>;
  /** Ascending by creation, after `after`. */
  libraries(
    tenant: string,
    range: { order: "asc" | "desc"; limit: number; after: { createdAt: number; id: string } },
  ): Promise<StoredLibrary[]>;
  /** Numbers of deployed definitions, in the order given; one that is not kept yet has none. */
  published(
    tenant: string,
    definitions: readonly CodeDefinition[],
  ): Promise<(PublishedVersion | undefined)[]>;
  /** Keeps those that are missing, each as the next version, and answers as `published`. Twice is once. */
  publish(
    tenant: string,
    definitions: readonly CodeDefinition[],
    now: number,
  ): Promise<(PublishedVersion | undefined)[]>;
}
