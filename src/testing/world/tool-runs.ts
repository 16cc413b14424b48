/** Records the runs of an application's tools and actions. */
import { AsyncLocalStorage } from "node:async_hooks";
import type { ToolContext } from "../../library/define/define.ts";
import type { DeployedFunction, ToolCodes } from "../../library/registry/deployed-code.ts";
import { Deferred } from "../../library/tools/deferred.ts";
import type { Run } from "../../library/tools/tool.ts";
import type { Clock } from "../../ports/clock.ts";
import { defined } from "../../shared/defined.ts";
import { errorText } from "../../shared/errors.ts";
import type { JsonValue } from "../../shared/json.ts";
import { inUserCode } from "./user-code.ts";

/** One run of a tool or an action. */
export interface ToolRun {
  /** The id of the tool, the action as `library/id`, or `http.request`. */
  tool: string;
  /** As the tool or the request declares it; absent for an action of code. */
  effect?: "pure" | "idempotent" | "once";
  input: JsonValue;
  /** The result of the function, as JSON; the status of a request. */
  output?: JsonValue;
  /** The function has deferred its result. */
  deferred?: true;
  /** The message of the error that the function threw. */
  error?: string;
  /** The idempotency key. It stays the same in all attempts of a call. */
  operationId: string;
  /** The number of runs with this key so far, this run included. */
  attempt: number;
  agent?: string;
  conversationId?: string;
  runId?: string;
  /** Milliseconds since the epoch, on the virtual clock. */
  at: number;
}

/** The world of recorded runs. */
export interface RecordedWorld {
  readonly clock: Pick<Clock, "now" | "timer">;
  /** Stops the clock until the work is done. */
  during<Value>(work: Promise<Value>): Promise<Value>;
  note(text: string): void;
}

/** Maximum characters of a value in the history. */
const MAX_SHOWN = 200;

/** What runs, and the value of its result in the record. */
interface Recorded<Value> {
  tool: string;
  effect?: ToolRun["effect"];
  input: unknown;
  run(): Value | Promise<Value>;
  shown?(value: Value): unknown;
}

/** Virtual time that a held run waits for another run with its key, in milliseconds. */
const MAX_HELD_MS = 20_000;

export class EffectRecorder {
  readonly effects: ToolRun[] = [];
  readonly #holding = new AsyncLocalStorage<true>();
  /** Begin the held runs, by the key of the run. */
  readonly #held = new Map<string, () => void>();

  constructor(private readonly world: RecordedWorld) {}

  /** The runs inside `body` wait for other runs with their keys (FAULT-2). */
  held<Value>(body: () => Value): Value {
    return this.#holding.run(true, body);
  }

  /** Runs the code of a call, and records the run. Rethrows its errors. */
  async run<Value>(
    { operationId, context }: Pick<ToolContext, "operationId" | "context">,
    { tool, effect, input, run, shown: resultOf = (value) => value }: Recorded<Value>,
  ): Promise<Value> {
    const { clock } = this.world;
    const { agentId: agent, conversationId, runId } = context;
    const earlier = this.effects.filter((one) => one.operationId === operationId && one.tool === tool);
    const attempt = 1 + earlier.length;
    const record: ToolRun = {
      ...{ tool, input: jsonOf(input), operationId, attempt, at: clock.now() },
      ...defined({ effect, agent, conversationId, runId }),
    };
    this.effects.push(record);
    const call = `${tool}(${shown(record.input)}), run ${attempt} of ${operationId}`;
    try {
      const output = await this.#begin(`${tool} ${operationId}`, attempt, () =>
        this.world.during(inUserCode(async () => run())),
      );
      if (output instanceof Deferred) {
        record.deferred = true;
        this.world.note(`${call}: deferred`);
        return output;
      }
      record.output = jsonOf(resultOf(output));
      this.world.note(`${call}: ${shown(record.output)}`);
      return output;
    } catch (error) {
      record.error = errorText(error);
      this.world.note(`${call} fails: ${record.error}`);
      throw error;
    }
  }

  /** Begins a run, or holds it. A run begins in the same instant as the held run with its key. */
  #begin<Value>(key: string, attempt: number, begin: () => Promise<Value>): Promise<Value> {
    const { clock } = this.world;
    const other = this.#held.get(key);
    if (other === undefined && this.#holding.getStore() === true) {
      const { promise, resolve } = Promise.withResolvers<Value>();
      const start = () => {
        if (this.#held.get(key) !== start) return;
        this.#held.delete(key);
        resolve(begin());
      };
      this.#held.set(key, start);
      clock.timer(MAX_HELD_MS, start);
      return promise;
    }
    if (other !== undefined) this.world.note(`An earlier run of ${key} continues beside run ${attempt}.`);
    other?.();
    return begin();
  }
}

export function recordedTools(code: ToolCodes, recorder: EffectRecorder): ToolCodes {
  const recorded =
    (tool: string, run: Run, declared?: DeployedFunction["definition"]): Run =>
    (input, context) =>
      recorder.run(context, {
        ...{ tool, input, run: () => run(input, context) },
        ...defined({ effect: declared?.effect }),
      });
  return {
    toolCode: (library, id) => {
      const found = code.toolCode(library, id);
      return found && { ...found, run: recorded(id, found.run, found.definition) };
    },
    actionCode: (library, id) => {
      const run = code.actionCode(library, id);
      return run && recorded(`${library}/${id}`, run);
    },
  };
}

function shown(value: JsonValue): string {
  const text = JSON.stringify(value);
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN)}…`;
}

/** Returns a copy of a value as JSON; a text about a value that is no JSON. */
function jsonOf(value: unknown): JsonValue {
  try {
    return JSON.parse(JSON.stringify(value) ?? "null");
  } catch (error) {
    return `(no JSON: ${error instanceof Error ? error.message : error})`;
  }
}
