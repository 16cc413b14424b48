/**
 * The transitions that a token follows after its node. Pure.
 *
 * ROUTE-1  The first priority with a firing transition wins. All firing transitions of this priority fire. Later priorities are not
 *          evaluated. A transition without a condition fires.
 * ROUTE-2  A transition that has fired `maxIterations` times on the path of a token does not fire again. A later transition may fire
 *          instead.
 * ROUTE-3  A `foreach` makes a token for each item, and no token for an empty list. A value that is not a list is an error. Without
 *          `foreach`, `spawnCount` applies. A collection that is only a path is not copied, so its length takes no steps.
 * ROUTE-4  Transitions that fire together make at most `MAX_BRANCHES` tokens. A larger number is rejected before the first token is made.
 */
import type { WorkflowTransition } from "../../../protocol/workflow-definition.ts";
import { type ReadPath, readsOf } from "../../../shared/expressions/reads.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import type { Meter } from "../../../shared/json-schema/meter.ts";
import type { Draft } from "./draft.ts";
import { evaluated, invalid, TokenFailure, type Variables, variablesOf } from "./evaluation.ts";
import { MAX_BRANCHES } from "./run-limits.ts";
import type { Counts, Token } from "./state.ts";

/** A transition that fires, and the items of each token that it makes. */
export interface Firing {
  readonly transition: WorkflowTransition;
  readonly items: readonly JsonObject[];
}

/** Returns the transitions that fire behind a token; an empty list at an end. Throws `TokenFailure`. */
export function firingBehind(draft: Draft, token: Token, meter: Meter): Firing[] {
  const tiers = draft.graph.tiers(token.node);
  if (tiers.length === 0) return [];
  const variables = variablesOf(draft, token, meter);
  for (const tier of tiers) {
    const firing = tier.filter((transition) => fires(draft, token, transition, variables, meter));
    if (firing.length > 0) {
      const lists = firing.map((transition) => listOf(transition, variables, meter));
      checkTotal(token, lists);
      return firing.map((transition, index) => ({ transition, items: itemsOf(transition, lists[index]) }));
    }
  }
  return [];
}

export function countedWith(counts: Counts, transitions: readonly WorkflowTransition[]): Counts {
  const bounded = transitions.filter(({ loopConfig }) => loopConfig !== undefined);
  if (bounded.length === 0) return counts;
  return { ...counts, ...Object.fromEntries(bounded.map(({ ref }) => [ref, countOf(counts, ref) + 1])) };
}

function countOf(counts: Counts, ref: string): number {
  return Object.hasOwn(counts, ref) ? (counts[ref] ?? 0) : 0;
}

function fires(
  draft: Draft,
  { id, node, counts }: Token,
  transition: WorkflowTransition,
  variables: Variables,
  meter: Meter,
): boolean {
  const { condition, loopConfig, ref } = transition;
  if (condition !== undefined && !holds(transition, condition, variables, meter)) return false;
  if (loopConfig === undefined || countOf(counts, ref) < loopConfig.maxIterations) return true;
  draft.noteOf({ id, node }, "loop_limit_reached", { transition: ref });
  return false;
}

function holds(
  transition: WorkflowTransition,
  condition: string,
  variables: Variables,
  meter: Meter,
): boolean {
  const what = `The condition of the transition "${transition.ref}"`;
  const value = evaluated(transition, condition, variables, meter, what);
  if (typeof value === "boolean") return value;
  throw new TokenFailure(invalid(`${what} must be true or false. It is ${typeName(value)}.`));
}

/** The source of the tokens of a transition: the items of a list, or a number. */
type Spawned = readonly Json[] | number;

function listOf(
  { ref, foreach, spawnCount = 1 }: WorkflowTransition,
  variables: Variables,
  meter: Meter,
): Spawned {
  if (foreach === undefined) return spawnCount;
  const what = `The collection of the transition "${ref}"`;
  const list = listAt(foreach, variables) ?? evaluated(foreach, foreach.collection, variables, meter, what);
  if (Array.isArray(list)) return list;
  throw new TokenFailure(invalid(`${what} must be a list. It is ${typeName(list)}.`));
}

/**
 * Throws `TokenFailure` for more tokens than a fan-out may have branches. It runs before tokens are made, because many transitions may
 * share a large list.
 */
function checkTotal({ node }: Token, lists: readonly Spawned[]): void {
  const total = lists.reduce<number>((sum, list) => sum + (typeof list === "number" ? list : list.length), 0);
  if (total <= MAX_BRANCHES) return;
  throw new TokenFailure({
    code: "TOO_LARGE",
    message: `The transitions from "${node}" create ${total} tokens at once. The maximum is ${MAX_BRANCHES}.`,
  });
}

function itemsOf({ foreach }: WorkflowTransition, list: Spawned = 0): JsonObject[] {
  if (typeof list === "number") return Array.from({ length: list }, () => ({}));
  const { itemVar = "" } = foreach ?? {};
  return list.map((item) => ({ [itemVar]: item }));
}

const paths = new WeakMap<object, ReadPath | null>();

/**
 * Returns the list at the path of a collection, without a copy; values of a run are immutable. Returns `undefined` if the collection is not
 * a path.
 */
function listAt(foreach: { collection: string }, variables: Variables): Json[] | undefined {
  const path = paths.get(foreach) ?? readsOf(foreach.collection).whole;
  paths.set(foreach, path);
  let value: Json | undefined = path === null ? undefined : { ...variables };
  for (const name of path ?? [])
    value = isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
  return Array.isArray(value) ? value : undefined;
}

function typeName(value: Json | undefined): string {
  if (value === undefined) return "missing";
  return value === null ? "null" : Array.isArray(value) ? "a list" : `of type ${typeof value}`;
}
