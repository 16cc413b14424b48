/** Records the runs of an application's tools and actions. */
import type { DeployedFunction, ToolCodes } from "../../library/registry/deployed-code.ts";
import { Deferred } from "../../library/tools/deferred.ts";
import type { Run } from "../../library/tools/tool.ts";
import type { JsonValue } from "../../shared/json.ts";

/** One run of a tool or an action. */
export interface ToolEffect {
  /** The id of the tool, or the action as `library/id`. */
  tool: string;
  /** As the tool declares it; absent for an action. */
  effect?: "pure" | "idempotent" | "once";
  input: JsonValue;
  /** The result of the function, as JSON. */
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

/** Returns code that adds each of its runs to `effects`. */
export function recordedTools(
  code: ToolCodes,
  effects: ToolEffect[],
  { now, during, note }: RecordingPorts,
): ToolCodes {
  const recorded =
    (tool: string, run: Run, declared?: DeployedFunction["definition"]): Run =>
    async (input, context) => {
      const { operationId } = context;
      const { agentId: agent, conversationId, runId } = context.context;
      const attempt =
        1 + effects.filter((one) => one.operationId === operationId && one.tool === tool).length;
      const record: ToolEffect = {
        ...{ tool, input: jsonOf(input), operationId, attempt, at: now() },
        ...(declared && { effect: declared.effect }),
        ...(agent !== undefined && { agent }),
        ...(conversationId !== undefined && { conversationId }),
        ...(runId !== undefined && { runId }),
      };
      effects.push(record);
      const call = `${tool}(${shown(record.input)}), run ${attempt} of ${operationId}`;
      try {
        const output = await during(run(input, context));
        if (output instanceof Deferred) {
          record.deferred = true;
          note(`${call}: deferred`);
          return output;
        }
        record.output = jsonOf(output);
        note(`${call}: ${shown(record.output)}`);
        return output;
      } catch (error) {
        record.error = error instanceof Error ? error.message : String(error);
        note(`${call} fails: ${record.error}`);
        throw error;
      }
    };
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
