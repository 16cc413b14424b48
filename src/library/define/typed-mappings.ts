/**
 * Types of the mappings of a workflow in code. They find in the editor what `defineWorkflow` finds when the module loads.
 *
 * MAPTYPE-1  An expression that is only a path reads a member that its schema has, and a value that fits its reader.
 * MAPTYPE-2  Other expressions, `output` and definitions by reference have no types. `defineWorkflow` checks them.
 */
import type { Mapping } from "../../shared/expressions/mapping.ts";

/** Characters that a path does not have. */
// biome-ignore format: a list of characters is easier to read on one line
type Operator = " " | "\n" | "(" | "[" | "{" | '"' | "'" | "+" | "-" | "*" | "/" | "%" | "<" | ">" | "=" | "!" | "&" | "|" | "?" | ":" | ",";

/** The member of a value; `never` if no form of the value has it. */
type Member<Value, Name> = unknown extends Value
  ? unknown
  : Value extends readonly unknown[]
    ? unknown
    : Name extends keyof Value
      ? Value[Name]
      : never;

/** The value at a path; `never` if the path does not exist. */
type ValueAt<Value, Path extends string> = Path extends `${infer Name}.${infer Rest}`
  ? ValueAt<Member<Value, Name>, Rest>
  : Member<Value, Path>;

/** The names that the first wrong name of a path may be: the compiler shows them. */
type Known<
  Value,
  Path extends string,
  Before extends string = "",
> = Path extends `${infer Name}.${infer Rest}`
  ? [Member<Value, Name>] extends [never]
    ? `${Before}${keyof Value & string}`
    : Known<Member<Value, Name>, Rest, `${Before}${Name}.`>
  : `${Before}${keyof Value & string}`;

/** A value fits if one of its forms fits: a missing value is left out, a text may be one of the wanted texts, and JSON turns a date into a text. */
type Fits<Given, Wanted> = unknown extends Given | Wanted
  ? true
  : Given extends Wanted | Date
    ? true
    : Wanted extends Given & (string | number | boolean)
      ? true
      : never;

type Kind<Value> = [Value] extends [string]
  ? "a string"
  : [Value] extends [number]
    ? "a number"
    : [Value] extends [boolean]
      ? "a boolean"
      : [Value] extends [readonly unknown[]]
        ? "a list"
        : "an object";

/** The expression if it is right. Otherwise texts for the message of the compiler (MAPTYPE-1). */
type Expression<Source, Variables, Wanted> = Source extends `${string}${Operator}${string}`
  ? Source
  : Source extends (keyof Variables & string) | `${keyof Variables & string}.${string}`
    ? Read<Source, ValueAt<Variables, Source>, Variables, Wanted>
    : Source;

type Read<Source extends string, Value, Variables, Wanted> = [Value] extends [never]
  ? Known<Variables, Source>
  : [Fits<Value, Wanted>] extends [never]
    ? `${Source} is ${Kind<NonNullable<Value>>} that does not fit. Its reader takes ${Kind<NonNullable<Wanted>>}.`
    : Source;

/** The mapping of an object that fits `Wanted`. */
export type InputOf<Given extends Mapping, Wanted, Variables> = string extends keyof Given
  ? Given
  : Exact<Given, Members<Given, unknown extends Wanted ? Given : Wanted, Wanted, Variables>>;

type Members<Given, Names, Wanted, Variables> = {
  [Name in keyof Names]: Name extends keyof Given
    ? Expression<Given[Name], Variables, Name extends keyof Wanted ? Wanted[Name] : unknown>
    : string;
};

/** The mapping of a node to `state` and `output`. */
export type WritesOf<Given extends Mapping, State, Variables> = string extends keyof Given
  ? Given
  : Exact<Given, CheckedWrites<Given, State, Variables>>;

type CheckedWrites<Given, State, Variables> = {
  [Path in keyof Given]: Path extends `state.${infer Name}`
    ? [ValueAt<State, Name>] extends [never]
      ? `Not in the context. It has: ${Known<State, Name>}`
      : Expression<Given[Path], Variables, ValueAt<State, Name>>
    : Expression<Given[Path], Variables, unknown>;
};

/** The given type if it fits. Otherwise the checked type, so that the compiler names the wrong member. */
export type Exact<Given, Checked> = Given extends Checked
  ? [Exclude<keyof Given, keyof Checked>] extends [never]
    ? Given
    : Checked
  : Checked;
