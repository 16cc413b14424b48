/**
 * A recorded turn as the script of a model and the results of tools.
 *
 * EVALREC-1  A recorded call gets its recorded result. Its target does not run again, and no person is asked.
 * EVALREC-2  Of other calls, only `pure` tools run. Any other call is reported, and fails.
 * EVALREC-3  Equal calls get the results of the recorded calls in their order.
 */
import { invocationOf } from "../../agents/conversation/effects/tool-batch.ts";
import { failedResult } from "../../agents/executor/run-tool.ts";
import { agentTarget } from "../../library/tools/agent-tool.ts";
import { ToolError } from "../../library/tools/tool-error.ts";
import { needsApproval } from "../../protocol/approval.ts";
import type { PinnedTool, VersionChain } from "../../protocol/definitions.ts";
import type {
  ExecutorReport,
  TaskExecutor,
  ToolErrorCode,
  ToolInvocation,
  ToolResult,
} from "../../protocol/executor-api.ts";
import type { TurnRecording } from "../../protocol/recording.ts";
import { defined } from "../../shared/defined.ts";
import { canonicalJson, type Json, type JsonObject } from "../../shared/json.ts";
import type { ScriptedReply } from "../model-script.ts";
import type { WorldRecording } from "../world/world-tools.ts";

interface RecordedCall {
  reply: number;
  name: string;
  input: JsonObject;
  result?: { success: boolean; result?: Json; error?: { code?: ToolErrorCode; message?: string } };
}

function callsIn({ turn }: TurnRecording): RecordedCall[] {
  // SAFETY: the conversation that exported the recording wrote its operations.
  return turn.operations as unknown as RecordedCall[];
}

export function answerIn({ turn }: TurnRecording): string {
  return String(turn.replies.at(-1)?.text ?? "");
}

export function repliesIn(recording: TurnRecording): ScriptedReply[] {
  const calls = callsIn(recording);
  return recording.turn.replies.map((reply, index) => {
    const requested = calls
      .filter((call) => call.reply === index)
      .map(({ name, input }) => ({ name, input }));
    return {
      text: String(reply.text ?? ""),
      ...(requested.length > 0 && { calls: requested, unchecked: true }),
    };
  });
}

/** The recorded results of a turn, in place of the targets of its calls. */
export class RecordedCalls implements WorldRecording {
  /** The results of equal calls that no call has, in order. */
  readonly #results: ReadonlyMap<string, NonNullable<RecordedCall["result"]>[]>;
  /** The results that calls have, by operation. Another attempt of a call gets the same result. */
  readonly #given = new Map<string, NonNullable<RecordedCall["result"]>>();
  /** The tools of all agents, with their targets. */
  readonly #tools: PinnedTool[] = [];

  constructor(
    recording: TurnRecording,
    /** Takes the problem of a call that has no recorded result and does not run. */
    private readonly onMissing: (problem: string) => void,
  ) {
    const calls = Map.groupBy(callsIn(recording), ({ name, input }) => keyOf(name, input));
    this.#results = new Map(
      [...calls].map(([key, equal]) => [key, equal.flatMap(({ result }) => result ?? [])]),
    );
  }

  /** Lets the executor answer all calls, also calls of workflows and agents. The hooks would make requests, which are recorded, too. */
  chain({
    contextAssembly: _request,
    memoryExtraction: _memories,
    tools,
    ...chain
  }: VersionChain): VersionChain {
    this.#tools.push(...tools);
    return { ...chain, tools: tools.map(withoutTarget) };
  }

  executor(executor: TaskExecutor): TaskExecutor {
    return {
      run: async (calls, caller) => {
        const ended: ExecutorReport[] = [];
        const running: ToolInvocation[] = [];
        for (const call of calls) {
          const { operationId } = call;
          const found = this.#resultOf(call);
          if ("input" in found) running.push(found);
          else ended.push({ operationId, result: found });
        }
        if (ended.length > 0) await caller.report(ended);
        if (running.length > 0) await executor.run(running, caller);
      },
    };
  }

  #recorded(operationId: string, key: string): RecordedCall["result"] {
    const found = this.#given.get(operationId) ?? this.#results.get(key)?.shift();
    if (found !== undefined) this.#given.set(operationId, found);
    return found;
  }

  /** Returns the result of a call, or the call of a `pure` tool as it runs. */
  #resultOf(call: ToolInvocation): ToolResult | ToolInvocation {
    const { toolCallId, tool, input } = call;
    const pinned = this.#tools.find(({ library, id }) => library === tool.library && id === tool.id);
    const name = pinned?.definition.name ?? tool.id;
    const recorded = this.#recorded(call.operationId, keyOf(name, input));
    if (recorded?.success)
      return { tool_call_id: toolCallId, success: true, result: recorded.result ?? null };
    if (recorded !== undefined) {
      const { message = "The tool failed.", code } = recorded.error ?? {};
      return failedResult(toolCallId, new ToolError(message, defined({ code })));
    }
    const { effect, approval } = pinned?.definition ?? {};
    if (pinned !== undefined && effect === "pure" && !needsApproval(approval))
      try {
        return { ...call, ...invocationOf({ tools: [pinned] }, { tool: call.tool, input: call.input }) };
      } catch (error) {
        return failedResult(toolCallId, error);
      }
    const problem = `The recording has no result of "${name}" for this input, and only \`pure\` tools run. Record the turn again.`;
    this.onMissing(problem);
    return failedResult(toolCallId, new ToolError(problem));
  }
}

/** Returns a tool that the executor runs at once, with the input of the model. */
function withoutTarget({ task: _task, definition, ...pin }: PinnedTool): PinnedTool {
  const { target, inputMapping: _mapping, approval: _approval, ...rest } = definition;
  // The input of an agent has members that its schema lacks (AGENTTOOL-1).
  const inputSchema = agentTarget(target) === undefined ? rest.inputSchema : { type: "object" };
  return { ...pin, definition: { ...rest, inputSchema } };
}

function keyOf(name: string, input: Json): string {
  return `${name} ${canonicalJson(input)}`;
}
