/**
 * The numbers under which the deployed definitions are kept.
 *
 * PUBLISH-1  The first request of an isolate that needs a number reads those of all deployed definitions with one
 *            statement, and writes what is missing and nothing else.
 * PUBLISH-2  Equal content has one number for ever: code that is rolled back has its old numbers again.
 */
import type { DefinitionStore, PublishedVersion } from "./definition-store.ts";
import type { CodeDefinition, CodeRegistry } from "./registry.ts";

/** The owner of what deployments bring along. No tenant has this name: theirs begin with no colon. */
export const CODE_TENANT = ":code";

type Numbers = ReadonlyMap<string, PublishedVersion>;

/** What an isolate knows of the numbers. */
export class PublishedCode {
  /** By database. Only the outcome is shared: a promise must not outlive the request that made it. */
  readonly #known = new WeakMap<object, Numbers>();

  constructor(private readonly code: Pick<CodeRegistry, "all">) {}

  /** The numbers for one request. */
  open(store: DefinitionStore): CodeNumbers {
    return new CodeNumbers(() => this.#numbers(store));
  }

  async #numbers(store: DefinitionStore): Promise<Numbers> {
    const known = this.#known.get(store.identity);
    if (known !== undefined) return known;
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
    this.#known.set(store.identity, numbers);
    return numbers;
  }
}

/** The numbers as one request asks for them: however many it asks for at once, they are read once. */
export class CodeNumbers {
  #numbers: Promise<Numbers> | undefined;

  constructor(private readonly read: () => Promise<Numbers>) {}

  /** Throws `UNAVAILABLE` while the store does not answer. */
  async version(definition: CodeDefinition): Promise<PublishedVersion> {
    this.#numbers ??= this.read();
    const found = (await this.#numbers).get(keyOf(definition));
    if (found === undefined) throw new Error(`${keyOf(definition)} was not published.`);
    return found;
  }
}

function keyOf({ kind, library, id, hash }: CodeDefinition): string {
  return `${kind} ${library}/${id} ${hash}`;
}
