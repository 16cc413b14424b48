/** The expressions of a run: over its areas, what its fan-ins joined, and the items of its tokens. Pure. */
import type { RunError } from "../../../protocol/workflow-run.ts";
import { compileExpression, type Expression } from "../../../shared/expressions/expression.ts";
import { type Mapping, mapped } from "../../../shared/expressions/mapping.ts";
import { ExpressionError } from "../../../shared/expressions/values.ts";
import type { Json, JsonObject } from "../../../shared/json.ts";
import { type Meter, Spent } from "../../../shared/json-schema/meter.ts";
import type { Draft } from "./draft.ts";
import type { ScopeKey, Token } from "./state.ts";
import { overlaid } from "./values.ts";

export class TokenFailure extends Error {
  constructor(readonly error: RunError) {
    super(error.message);
  }
}

export type Variables = Readonly<Record<string, Json>>;

/** Returns the error of a token's failure. Rethrows other exceptions. */
export function failureOf(error: unknown): RunError {
  if (error instanceof TokenFailure) return error.error;
  if (error instanceof ExpressionError) return invalid(error.message);
  if (error instanceof Spent)
    return invalid("Its expressions take too many steps. Simplify them, or move the work into a task.");
  throw error;
}

export function invalid(message: string): RunError {
  return { code: "INVALID_INPUT", message };
}

/** Returns the variables that expressions see from a scope. Throws `Spent` if the steps are used up. */
export function areas(
  draft: Draft,
  scope: ScopeKey,
  meter: Meter,
): { input: Json; state: Json; output: Json } {
  const outputs = [...draft.around(scope)].map((key) => draft.scope(key).output);
  return {
    input: draft.before.record.input,
    state: draft.state,
    output: outputs.reduceRight((outer, own) => overlaid(outer, own, meter)),
  };
}

export function variablesOf(draft: Draft, { scope, fanIn }: Token, meter: Meter): Variables {
  return { ...areas(draft, scope, meter), fanIn };
}

/** Returns the variables for the mappings of a token's node: the variables of its transitions, and its items. */
export function nodeVariables(draft: Draft, token: Token, meter: Meter): Variables {
  const names = draft.graph.items(token.node);
  // A mapping is compiled once, so each token has the same names.
  const items = [...names].map((name) => [name, ownMember(token.items, name)] as const);
  return { ...variablesOf(draft, token, meter), ...Object.fromEntries(items) };
}

/** Returns an own member of an object; `null` for an inherited member. */
function ownMember(object: JsonObject, name: string): Json {
  return Object.hasOwn(object, name) ? (object[name] ?? null) : null;
}

export function evaluatedMapping(
  mapping: Mapping,
  variables: Variables,
  meter: Meter,
  what: string,
): JsonObject {
  return orFail(what, () => mapped(mapping, variables, meter));
}

const compiled = new WeakMap<object, Map<string, Expression>>();

/** Returns the value of an expression; `undefined` if a path does not exist. `owner` has the expression. Throws `TokenFailure`. */
export function evaluated(
  owner: object,
  source: string,
  variables: Variables,
  meter: Meter,
  what: string,
): Json | undefined {
  const known = compiled.get(owner) ?? new Map<string, Expression>();
  compiled.set(owner, known);
  return orFail(what, () => {
    const expression = known.get(source) ?? compileExpression(source, Object.keys(variables));
    known.set(source, expression);
    return expression.evaluate(variables, meter);
  });
}

function orFail<Value>(what: string, evaluate: () => Value): Value {
  try {
    return evaluate();
  } catch (error) {
    const { code, message } = failureOf(error);
    throw new TokenFailure({ code, message: `${what}: ${message}` });
  }
}
