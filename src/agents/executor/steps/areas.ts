/**
 * The areas of a running task: its constant input, and the state and the output that its steps write. Pure.
 *
 * AREAS-2  The steps of a task write at most `MAX_TASK_CONTEXT_LENGTH` units of JSON to state and output in total.
 * AREAS-3  A write costs only its path and its value. A failed write is rolled back.
 */
import { ERRORS, LAST_OUTPUT } from "../../../library/tasks/paths.ts";
import {
  MAX_NOTED_ERRORS,
  MAX_NOTED_MESSAGE,
  MAX_TASK_CONTEXT_LENGTH,
} from "../../../library/tasks/task-limits.ts";
import { ExpressionError } from "../../../shared/expressions/values.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { cut } from "../../../shared/text.ts";

/** An error of a step with `continue`. */
export interface NotedError {
  step: string;
  code: string;
  message: string;
}

export class TaskAreas {
  readonly #state: JsonObject = {};
  readonly #output: JsonObject = {};
  readonly #errors: NotedError[] = [];
  #written = 0;
  hasOutput = false;

  constructor(readonly input: Json) {}

  get variables(): { input: Json; state: JsonObject; output: JsonObject } {
    return { input: this.input, state: this.#state, output: this.#output };
  }

  get output(): JsonObject {
    return this.#output;
  }

  /** Writes values by their paths, all or not at all. Throws `ExpressionError`. */
  write(values: JsonObject): void {
    this.#take(Object.values(values));
    const areas: JsonObject = { state: this.#state, output: this.#output };
    const undo: (() => void)[] = [];
    try {
      for (const [path, value] of Object.entries(values)) setMember(areas, path.split("."), value, undo);
    } catch (error) {
      for (const back of undo.reverse()) back();
      throw error;
    }
    if (Object.keys(values).some((path) => path.startsWith("output."))) this.hasOutput = true;
  }

  /** Stores the result of a step without mappings. */
  writeLast(result: Json): void {
    this.#take([result]);
    this.#state[LAST_OUTPUT] = result;
  }

  /** The result of the last step without mappings, or `null`. */
  get last(): Json {
    return this.#state[LAST_OUTPUT] ?? null;
  }

  /** Records a failure that the task continues after. Drops the oldest error and cuts a long message, so there is always room. */
  noteError({ step, code, message }: NotedError): void {
    this.#errors.push({ step, code, message: cut(message, MAX_NOTED_MESSAGE) });
    if (this.#errors.length > MAX_NOTED_ERRORS) this.#errors.shift();
    this.#state[ERRORS] = this.#errors.map((error) => ({ ...error }));
  }

  #take(values: readonly Json[]): void {
    const length = values.reduce<number>((sum, value) => sum + JSON.stringify(value).length, 0);
    if (this.#written + length > MAX_TASK_CONTEXT_LENGTH)
      throw new ExpressionError(
        "Range",
        `The steps of a task may write ${MAX_TASK_CONTEXT_LENGTH} characters of JSON to state and output in total. They would have written ${this.#written + length}.`,
      );
    this.#written += length;
  }
}

/** Sets a member, and creates the objects on its path. Adds the reverse change to `undo`. */
function setMember(
  object: JsonObject,
  [name = "", ...rest]: readonly string[],
  value: Json,
  undo: (() => void)[],
): void {
  const before = Object.hasOwn(object, name) ? object[name] : undefined;
  if (rest.length > 0 && before !== undefined) {
    if (!isJsonObject(before))
      throw new ExpressionError(
        "Type",
        `"${name}" is not an object, so it cannot have a member "${rest[0]}".`,
      );
    setMember(before, rest, value, undo);
    return;
  }
  undo.push(() => {
    if (before === undefined) delete object[name];
    else object[name] = before;
  });
  if (rest.length === 0) {
    object[name] = value;
    return;
  }
  const inner: JsonObject = {};
  object[name] = inner;
  setMember(inner, rest, value, undo);
}
