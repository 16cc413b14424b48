/**
 * The walk over a workflow and all its references, direct and through sub-workflows. Pure: the walk requests each
 * definition. Its driver reads the definition from memory or from a database.
 *
 * NEST-1  A workflow never contains itself, in any version, directly or through others.
 * NEST-2  Workflows nest at most 10 levels deep. A workflow names at most 200 different tasks and workflows,
 *         including the references of its sub-workflows.
 * NEST-3  Both rules hold for workflows in code and for posted workflows. They are checked when the code starts, when
 *         a workflow is posted, and when a run begins. When the code starts, named versions and libraries that are
 *         not deployed are unknown. The walk skips them.
 */
import type { WorkflowDefinition } from "../../protocol/workflow-definition.ts";
import { type DramatisError, invalid } from "../../shared/errors.ts";
import { placed } from "../definitions/placed.ts";
import {
  type DefinitionKey,
  formatReference,
  type LibraryReference,
  parseReference,
} from "../definitions/reference.ts";
import { MAX_LEVELS, MAX_PARTS } from "./workflow-limits.ts";

export interface Source extends DefinitionKey {
  definition: WorkflowDefinition;
}

/** A task or a workflow that a node runs. */
export interface Part {
  kind: "task" | "workflow";
  reference: LibraryReference;
  /** Such as `Workflow "lib/x", /nodes/2/task`; absent if the caller reports the place itself. */
  place?: string;
}

/** A walk requests definitions of workflows. It skips unknown workflows. */
export type Walk<Found extends Source, Result> = Generator<Part, Result, Found | undefined>;

/** The way down from a workflow. */
interface Below {
  /** The names on the longest path, from the workflow down. */
  longest: readonly string[];
  names: ReadonlySet<string>;
}

/** Returns the tasks and workflows that a workflow names, each once, with its first place. */
export function partsOf({ library, id, definition }: Source): Part[] {
  const parts = new Map<string, Part>();
  for (const [index, { task, workflow }] of definition.nodes.entries()) {
    const kind = task === undefined ? "workflow" : "task";
    const given = task ?? workflow;
    if (given === undefined || parts.has(`${kind} ${given}`)) continue;
    const place = `Workflow "${library}/${id}", /nodes/${index}/${kind}`;
    parts.set(`${kind} ${given}`, { kind, reference: parseReference(given, library), place });
  }
  return [...parts.values()];
}

/** The workflows below one workflow. Make one for each that is checked. */
export class Nesting<Found extends Source = Source> {
  readonly found = new Map<string, Found>();
  readonly #parts = new Set<string>();
  readonly #below = new Map<string, Below>();

  /** True once more parts were counted than a workflow may have. */
  get isFull(): boolean {
    return this.#parts.size > MAX_PARTS;
  }

  /** Counts a task or a workflow that is named. Throws `INVALID_INPUT` for too many. */
  count({ kind, reference, place }: Part): void {
    this.#parts.add(`${kind} ${formatReference(reference)}`);
    if (this.isFull)
      throw invalidPlace(
        place,
        `A workflow may name ${MAX_PARTS} tasks and workflows, including its sub-workflows. Move parts into tasks of several steps.`,
      );
  }

  /** Walks the descendants of a workflow. `above` has the names of its ancestors. Throws `INVALID_INPUT`. */
  *below(source: Found, above: readonly string[] = []): Walk<Found, Below> {
    const name = nameOf(source);
    const names = new Set([name]);
    let longest: readonly string[] = [];
    for (const part of partsOf(source)) {
      if (part.kind === "task") {
        this.count(part);
        continue;
      }
      const below = yield* this.enter(part, [...above, name]);
      for (const one of below.names) names.add(one);
      if (below.longest.length > longest.length) longest = below.longest;
    }
    return { longest: [name, ...longest], names };
  }

  /** Walks a workflow that a workflow names, and all below it, once. Throws `INVALID_INPUT`. */
  *enter(part: Part, above: readonly string[]): Walk<Found, Below> {
    this.count(part);
    const { reference, place } = part;
    const name = nameOf(reference);
    if (above.includes(name)) {
      const loop = [...above.slice(above.indexOf(name)), name].join(" > ");
      throw invalidPlace(place, `A workflow contains itself: ${loop}. Remove one of these nodes.`);
    }
    refuseDepth(place, [...above, name]);
    const key = formatReference(reference);
    const known = this.#below.get(key);
    // A descendant that is also an ancestor is a loop. Walk it again to report the loop.
    if (known !== undefined && !above.some((one) => known.names.has(one))) {
      refuseDepth(place, [...above, ...known.longest]);
      return known;
    }
    const source = this.found.get(key) ?? (yield part);
    if (source !== undefined) this.found.set(key, source);
    const below =
      source === undefined ? { longest: [name], names: new Set([name]) } : yield* this.below(source, above);
    this.#below.set(key, below);
    return below;
  }
}

/**
 * Checks the workflows of deployed code (NEST-3). Throws `INVALID_INPUT`.
 *
 * @param find Returns the latest content of a workflow; `undefined` if it is unknown.
 */
export function checkNesting(
  workflows: readonly Source[],
  find: (key: DefinitionKey) => Source | undefined,
): void {
  const walked = new Set<string>();
  for (const source of workflows) {
    if (walked.has(nameOf(source))) continue;
    const nesting = new Nesting();
    const walk = nesting.below(source);
    let next = walk.next();
    while (!next.done) {
      const { reference } = next.value;
      next = walk.next(reference.version === undefined ? find(reference) : undefined);
    }
    for (const name of nesting.found.keys()) walked.add(name);
  }
}

/** Runs a walk over definitions that `read` returns. An error of `read` gets the place of the reference. */
export async function readAll<Found extends Source, Result>(
  walk: Walk<Found, Result>,
  read: (reference: LibraryReference) => Promise<Found>,
): Promise<Result> {
  let next = walk.next();
  while (!next.done) {
    const { reference, place } = next.value;
    next = walk.next(await placed(place, () => read(reference)));
  }
  return next.value;
}

function refuseDepth(place: string | undefined, path: readonly string[]): void {
  if (path.length > MAX_LEVELS)
    throw invalidPlace(
      place,
      `Workflows may nest ${MAX_LEVELS} levels deep: ${path.join(" > ")}. Let a workflow further up run the lower workflows.`,
    );
}

function nameOf({ library, id }: DefinitionKey): string {
  return formatReference({ library, id });
}

function invalidPlace(place: string | undefined, message: string): DramatisError {
  return invalid(place === undefined ? message : `${place}: ${message}`);
}
