/**
 * The areas of a running task: its input, which does not change, and the state and the output, which its steps write. Pure.
 *
 * AREAS-2  State and output have at most `MAX_TASK_CONTEXT_LENGTH` units as JSON together.
 */
import { MAX_NOTED_ERRORS, MAX_TASK_CONTEXT_LENGTH } from "../../../library/tasks/limits.ts";
import { ERRORS, LAST_OUTPUT } from "../../../library/tasks/paths.ts";
import { ExpressionError } from "../../../shared/expressions/values.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

export class TaskAreas {
  #state: JsonObject = {};
  #output: JsonObject = {};
  /** A step has written to the output. */
  hasOutput = false;

  constructor(readonly input: Json) {}

  /** The variables of expressions. */
  get variables(): { input: Json; state: JsonObject; output: JsonObject } {
    return { input: this.input, state: this.#state, output: this.#output };
  }

  get output(): JsonObject {
    return this.#output;
  }

  /** Writes values by their paths, all or none. Throws `ExpressionError`. */
  write(values: JsonObject): void {
    const areas: JsonObject = { state: this.#state, output: this.#output };
    const written = Object.entries(values).reduce(
      (current, [path, value]) => withMember(current, path.split("."), value),
      areas,
    );
    this.#keep(written);
    if (Object.keys(values).some((path) => path.startsWith("output."))) this.hasOutput = true;
  }

  /** Keeps the result of a step that maps nothing. */
  writeLast(result: Json): void {
    this.#keep({ state: { ...this.#state, [LAST_OUTPUT]: result }, output: this.#output });
  }

  /** The result of the last step that mapped nothing; `null` where there was none. */
  get last(): Json {
    return this.#state[LAST_OUTPUT] ?? null;
  }

  /** Notes a failure that the task goes on after. */
  noteError(error: { step: string; code: string; message: string }): void {
    const known = this.#state[ERRORS];
    const errors = [...(Array.isArray(known) ? known : []), error].slice(-MAX_NOTED_ERRORS);
    this.#keep({ state: { ...this.#state, [ERRORS]: errors }, output: this.#output });
  }

  #keep({ state, output }: JsonObject): void {
    const length = JSON.stringify(state).length + JSON.stringify(output).length;
    if (length > MAX_TASK_CONTEXT_LENGTH)
      throw new ExpressionError(
        "Range",
        `State and output of a task may have ${MAX_TASK_CONTEXT_LENGTH} characters as JSON together. They would have ${length}.`,
      );
    // SAFETY: both were objects, and only members of theirs are written.
    [this.#state, this.#output] = [state as JsonObject, output as JsonObject];
  }
}

function withMember(object: JsonObject, [name = "", ...rest]: readonly string[], value: Json): JsonObject {
  if (rest.length === 0) return { ...object, [name]: value };
  const inner = Object.hasOwn(object, name) ? object[name] : {};
  if (!isJsonObject(inner))
    throw new ExpressionError("Type", `"${name}" is no object, so it has no member "${rest[0]}".`);
  return { ...object, [name]: withMember(inner, rest, value) };
}
