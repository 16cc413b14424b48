/**
 * The numbers under which the deployed definitions are kept.
 *
 * PUBLISH-1  The first request of an isolate that needs a number reads those of all deployed definitions with one
 *            statement, and writes what is missing and nothing else.
 * PUBLISH-2  Equal content has one number for ever: code that is rolled back has its old numbers again.
 */
import type { DefinitionStore, PublishedVersion } from "./definition-store.ts";
import type { CodeDefinition, CodeRegistry } from "./registry.ts";

/** The owner of what deployments bring along. No tenant has this name: theirs hold no colon. */
export const CODE_TENANT = ":code";

export class PublishedCode {
  /** By database. Only the outcome is shared: a promise must not outlive the request that made it. */
  readonly #numbers = new WeakMap<object, ReadonlyMap<string, PublishedVersion>>();

  constructor(private readonly code: Pick<CodeRegistry, "all">) {}

  /** Throws `UNAVAILABLE` while the store does not answer. */
  async version(store: DefinitionStore, definition: CodeDefinition): Promise<PublishedVersion> {
    const known = this.#numbers.get(store.identity) ?? (await this.#publish(store));
    const found = known.get(keyOf(definition));
    if (found === undefined) throw new Error(`${keyOf(definition)} was not published.`);
    return found;
  }

  async #publish(store: DefinitionStore): Promise<ReadonlyMap<string, PublishedVersion>> {
    const all = await this.code.all();
    let versions = await store.published(CODE_TENANT, all);
    if (versions.includes(undefined)) {
      const missing = all.filter((_, index) => versions[index] === undefined);
      const added = await store.publish(CODE_TENANT, missing, Date.now());
      versions = versions.map((version) => version ?? added.shift());
    }
    const numbers = new Map(
      all.flatMap((definition, index) => {
        const version = versions[index];
        return version === undefined ? [] : [[keyOf(definition), version] as const];
      }),
    );
    this.#numbers.set(store.identity, numbers);
    return numbers;
  }
}

function keyOf({ kind, library, id, hash }: CodeDefinition): string {
  return `${kind} ${library}/${id} ${hash}`;
}
