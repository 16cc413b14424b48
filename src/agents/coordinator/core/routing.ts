/**
 * The ways of a token behind its node. Pure.
 *
 * ROUTE-1  The first priority with a transition that fires wins: all that fire of it do, and no later one is looked at. Without a
 *          condition, a transition fires.
 * ROUTE-2  A transition that has fired `maxIterations` times on the way of a token does not fire again, so a later one may.
 * ROUTE-3  A `foreach` makes a token for each item, none for an empty list; what is no list is an error. Otherwise `spawnCount` counts.
 *          A collection that is only a path is not copied, so its length takes no steps.
 * ROUTE-4  The transitions that fire together make at most `MAX_BRANCHES` tokens. What is more is refused before any is made.
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

/** Returns the transitions that fire behind a token; none at an end. Throws `TokenFailure`. */
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

/** Returns the iterations of a token that follows transitions. */
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
  draft.note({ type: "loop_limit_reached", token: id, node, data: { transition: ref } });
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

/** Throws `TokenFailure` for more tokens than a fan-out may have branches: before any is made, since lists are shared and may be many. */
function checkTotal({ node }: Token, lists: readonly Spawned[]): void {
  const total = lists.reduce<number>((sum, list) => sum + (typeof list === "number" ? list : list.length), 0);
  if (total <= MAX_BRANCHES) return;
  throw new TokenFailure({
    code: "TOO_LARGE",
    message: `The transitions behind "${node}" make ${total} tokens at once. The maximum is ${MAX_BRANCHES}.`,
  });
}

function itemsOf({ foreach }: WorkflowTransition, list: Spawned = 0): JsonObject[] {
  if (typeof list === "number") return Array.from({ length: list }, () => ({}));
  const { itemVar = "" } = foreach ?? {};
  return list.map((item) => ({ [itemVar]: item }));
}

const paths = new WeakMap<object, ReadPath | null>();

/** Returns the list that a collection names by its path, which is shared: no value of a run changes. `undefined` for any other one. */
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
