/** Records the runs of an application's tools and actions. */
import type { ToolContext } from "../../library/define/define.ts";
import type { DeployedFunction, ToolCodes } from "../../library/registry/deployed-code.ts";
import { Deferred } from "../../library/tools/deferred.ts";
import type { Run } from "../../library/tools/tool.ts";
import { defined } from "../../shared/defined.ts";
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

interface RecordingPorts {
  now(): number;
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

/** Adds runs to `effects`. */
export class EffectRecorder {
  readonly effects: ToolRun[] = [];

  constructor(private readonly ports: RecordingPorts) {}

  /** Runs the code of a call, and records the run. Rethrows its errors. */
  async run<Value>(
    { operationId, context }: Pick<ToolContext, "operationId" | "context">,
    { tool, effect, input, run, shown: resultOf = (value) => value }: Recorded<Value>,
  ): Promise<Value> {
    const { now, during, note } = this.ports;
    const { agentId: agent, conversationId, runId } = context;
    const earlier = this.effects.filter((one) => one.operationId === operationId && one.tool === tool);
    const attempt = 1 + earlier.length;
    const record: ToolRun = {
      ...{ tool, input: jsonOf(input), operationId, attempt, at: now() },
      ...defined({ effect, agent, conversationId, runId }),
    };
    this.effects.push(record);
    const call = `${tool}(${shown(record.input)}), run ${attempt} of ${operationId}`;
    try {
      const output = await during(inUserCode(async () => run()));
      if (output instanceof Deferred) {
        record.deferred = true;
        note(`${call}: deferred`);
        return output;
      }
      record.output = jsonOf(resultOf(output));
      note(`${call}: ${shown(record.output)}`);
      return output;
    } catch (error) {
      record.error = error instanceof Error ? error.message : String(error);
      note(`${call} fails: ${record.error}`);
      throw error;
    }
  }
}

/** Returns code with recorded runs. */
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
