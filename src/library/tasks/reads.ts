/**
 * Checks the reads and writes of a task's steps against schemas and earlier steps. Pure.
 *
 * STEPREAD-1  An expression may read paths of `state` and `output` that an earlier step writes, and members of `input` that `inputSchema`
 *             allows. A path may be missing if the expression or the step's condition tests it with `has(…)`, `in` or a comparison with null.
 * STEPREAD-2  If any step writes the output, the steps must write each member that `outputSchema` requires. They must not write a member that it
 *             excludes.
 * STEPREAD-3  A text may use variables from the step's `inputMapping`. Without `inputMapping`, it may use members of the task's input. The texts
 *             of a prompt may use members of `requires`. A variable may be missing if the text tests it or gives it a `default`. A prompt that a
 *             step refers to is checked when the task is pinned.
 */
import type { StepDefinition } from "../../protocol/task-definition.ts";
import type { InputIssue } from "../../shared/errors.ts";
import { isWithin, type ReadPath, readsOf } from "../../shared/expressions/reads.ts";
import { ExpressionError } from "../../shared/expressions/values.ts";
import type { JsonObject } from "../../shared/json.ts";
import { Spent } from "../../shared/json-schema/meter.ts";
import { variablesOf } from "../../shared/templates/variables.ts";
import { jsonPointer } from "../../shared/validation.ts";
import { memberOf, requiredOf } from "../definitions/schema-paths.ts";
import { kindOf } from "./kinds.ts";
import { ERRORS, LAST_OUTPUT } from "./paths.ts";
import { isReference } from "./steps-schema.ts";

/** Maximum number of names that are read from a path. The cost grows with the square of this number. */
const MAX_NAMES = 16;

/** The fields of a task that this module reads. They have passed their schemas. */
interface Task {
  inputSchema: JsonObject;
  outputSchema?: JsonObject | undefined;
  steps: readonly StepDefinition[];
}

/** Returns the problems of a task's reads and writes (STEPREAD-1 to STEPREAD-3). */
export function readIssues({ inputSchema, outputSchema, steps }: Task): InputIssue[] {
  const written = new WrittenPaths();
  for (const name of [LAST_OUTPUT, ERRORS]) written.add(["state", name]);
  const issues = steps.flatMap((one, index) => {
    const base = `/steps/${index}`;
    const known = { written, tested: testedBy(one) };
    const found = [
      ...expressionsOf(one, base).flatMap((expression) => pathIssues(expression, inputSchema, known)),
      ...textIssues(one, base, inputSchema),
    ];
    for (const path of Object.keys(one.outputMapping ?? {})) written.add(path.split("."));
    return found;
  });
  return [...issues, ...outputIssues(steps, outputSchema)];
}

interface PlacedExpression {
  source: string;
  path: string;
}

function expressionsOf(
  { condition, idempotencyKey, inputMapping = {}, outputMapping = {}, action }: StepDefinition,
  base: string,
): PlacedExpression[] {
  const mappings = isReference(action) ? [] : (kindOf(action).mappings?.(action) ?? []);
  return [
    ...(condition === undefined ? [] : [{ source: condition.if, path: `${base}/condition/if` }]),
    ...(idempotencyKey === undefined ? [] : [{ source: idempotencyKey, path: `${base}/idempotencyKey` }]),
    ...placed(inputMapping, `${base}/inputMapping`),
    ...mappings.flatMap(({ path, mapping }) => placed(mapping, `${base}/action${path}`)),
    ...placed(outputMapping, `${base}/outputMapping`),
  ];
}

function placed(mapping: Readonly<Record<string, string>>, base: string): PlacedExpression[] {
  return Object.entries(mapping).map(([name, source]) => ({ source, path: jsonPointer([name], base) }));
}

function pathIssues(
  { source, path }: PlacedExpression,
  inputSchema: JsonObject,
  { written, tested }: { written: WrittenPaths; tested: readonly ReadPath[] },
): InputIssue[] {
  return readsOf(source).paths.flatMap((read) => {
    const [area = "", ...names] = read;
    if (names.length === 0 || isWithin(read, tested)) return [];
    const text = `\`${[area, ...names].join(".")}\``;
    if (area === "input" && memberOf(inputSchema, names).kind === "absent")
      return [
        {
          path,
          message: `Reads ${text}, which \`inputSchema\` does not have. Add it there, or read another member.`,
        },
      ];
    if ((area !== "state" && area !== "output") || written.covers([area, ...names])) return [];
    const message = `Reads ${text}, but no step before it writes that. Write it in an \`outputMapping\`, or test it with has(…).`;
    return [{ path, message }];
  });
}

/** Returns the paths that a step's condition tests. The step's expressions may read them. */
function testedBy({ condition }: StepDefinition): readonly ReadPath[] {
  return condition === undefined ? [] : readsOf(condition.if).tested;
}

/** The paths that steps write. The cost of a look-up depends only on the length of its path. */
class WrittenPaths {
  readonly #written = new Set<string>();
  /** The written paths, and all their ancestors. */
  readonly #reached = new Set<string>();

  add(path: readonly string[]): void {
    const prefixes = prefixesOf(path);
    this.#written.add(prefixes.at(-1) ?? "");
    for (const prefix of prefixes) this.#reached.add(prefix);
  }

  /** Reports whether a path, an ancestor or a descendant is written. */
  covers(path: readonly string[]): boolean {
    const prefixes = prefixesOf(path);
    return this.#reached.has(prefixes.at(-1) ?? "") || prefixes.some((prefix) => this.#written.has(prefix));
  }
}

/** Returns all prefixes of a path, the shortest first. They are JSON, because a name may contain any character. */
function prefixesOf(path: readonly string[]): string[] {
  return path.slice(0, MAX_NAMES).map((_, index) => JSON.stringify(path.slice(0, index + 1)));
}

function textIssues(
  { action, inputMapping }: StepDefinition,
  base: string,
  inputSchema: JsonObject,
): InputIssue[] {
  if (isReference(action)) return [];
  const given = (name: string) =>
    inputMapping === undefined
      ? memberOf(inputSchema, [name]).kind !== "absent"
      : Object.hasOwn(inputMapping, name);
  const where = inputMapping === undefined ? "`inputSchema` does not have" : "`inputMapping` does not give";
  return (kindOf(action).templates?.(action) ?? []).flatMap(({ path, source }) =>
    missingVariables(source, given, `${base}/action${path}`, where),
  );
}

/** Returns a problem for each variable of a text that has no source (STEPREAD-3). */
export function missingVariables(
  source: string | undefined,
  isGiven: (name: string) => boolean,
  path: string,
  where: string,
): InputIssue[] {
  return variables(source)
    .filter((name) => !isGiven(name))
    .map((name) => ({
      path,
      message: `Names \`${name}\`, which ${where}. Give it there, test it with {% if ${name} %}, or give it a \`default\`.`,
    }));
}

/** Returns the variables of a text. Returns an empty list for an invalid text, because another check reports it. */
function variables(source: string | undefined): string[] {
  try {
    return source === undefined ? [] : variablesOf(source);
  } catch (error) {
    if (error instanceof ExpressionError || error instanceof Spent) return [];
    throw error;
  }
}

function outputIssues(steps: readonly StepDefinition[], outputSchema: JsonObject | undefined): InputIssue[] {
  if (outputSchema === undefined) return [];
  const writes = steps.flatMap(({ outputMapping = {} }, index) =>
    Object.keys(outputMapping)
      .filter((path) => path.startsWith("output."))
      .map((path) => ({ path, at: jsonPointer([path], `/steps/${index}/outputMapping`) })),
  );
  if (writes.length === 0) return [];
  const members = new Set(writes.map(({ path }) => path.split(".")[1]));
  const missing = requiredOf(outputSchema)
    .filter((name) => !members.has(name))
    .map((name) => ({
      path: "/outputSchema",
      message: `Requires "${name}", but no step writes \`output.${name}\`. Write it, or do not require it.`,
    }));
  const excluded = writes.flatMap(({ path, at }) => {
    const [, name = ""] = path.split(".");
    const isOpen = outputSchema.additionalProperties !== false;
    if (isOpen || memberOf(outputSchema, [name]).kind !== "absent") return [];
    return [
      {
        path: at,
        message: `\`outputSchema\` has no member "${name}". Add it there, or write another member.`,
      },
    ];
  });
  return [...missing, ...excluded];
}
