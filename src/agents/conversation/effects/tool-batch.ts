/**
 * Runs the pending tool calls of one reply in the Executor and reports each result. Never throws. A call without a result
 * fails with `INTERNAL_ERROR`; the outcome of a `once` tool is then unknown.
 */

import { parseReference } from "../../../library/reference.ts";
import { fromStored } from "../../../library/stored-tool.ts";
import type { VersionChain } from "../../../protocol/definitions.ts";
import type { TaskExecutor, ToolInvocation, ToolResult } from "../../../protocol/executor-api.ts";
import type { Json } from "../../../shared/json.ts";
import { operationId } from "../core/ids.ts";
import { failure } from "../core/planning/tool-call.ts";
import type { ToolCompleted } from "../core/signals.ts";
import { type ConversationIdentity, callContext, type Operation, type Turn } from "../core/state.ts";

export interface ToolReports {
  onResult: (signal: ToolCompleted) => void;
  onProgress: (operationId: string, progress: Json) => void;
}

export interface ToolBatchInput extends ToolReports {
  record: ConversationIdentity;
  turn: Turn;
  operations: Operation[];
}

export async function performToolBatch(
  executor: TaskExecutor,
  { record, turn, operations, onResult, onProgress }: ToolBatchInput,
  signal: AbortSignal,
): Promise<void> {
  const context = callContext(record, turn);
  const waiting = new Map(operations.map((operation) => [operationId(turn, operation.item), operation]));
  const report = (id: string, { item }: Operation, result: ToolResult) => {
    waiting.delete(id);
    onResult({ type: "conversation.tool.completed", turn: turn.n, item, result });
  };
  try {
    const calls = [...waiting].map(([id, { toolCallId, tool, input, timeoutMs }]) => ({
      operationId: id,
      toolCallId,
      tool: invokedTool(record.chain, tool),
      input,
      timeoutMs,
      context,
    }));
    for await (const line of executor.run(calls, signal)) {
      const operation = waiting.get(line.operationId);
      if (operation === undefined) continue;
      if ("result" in line) report(line.operationId, operation, line.result);
      else onProgress(line.operationId, line.progress);
    }
  } catch (error) {
    if (!signal.aborted) console.error(error);
  }
  if (signal.aborted) return;
  for (const [id, operation] of [...waiting]) {
    const { toolCallId, name, effect } = operation;
    const isUnknown = effect === "once";
    const message = isUnknown
      ? `Outcome unknown: the connection to "${name}" was lost and it may have taken effect.`
      : `The run of "${name}" was lost.`;
    report(id, operation, failure(toolCallId, "INTERNAL_ERROR", message, !isUnknown));
  }
}

const NOWHERE: ToolInvocation["tool"] = { library: "", id: "", version: 0 };

/** Returns the deployed code of a tool: the tool itself, or the task that its pinned definition names. */
export function invokedTool({ tools }: VersionChain, tool: Operation["tool"]): ToolInvocation["tool"] {
  if (tool === null) return NOWHERE;
  const pinned = tools.find(
    ({ library, id, version }) => library === tool.library && id === tool.id && version === tool.version,
  );
  const target = pinned && fromStored(pinned.definition).target;
  return target === undefined ? tool : { ...parseReference(target.task), version: 0 };
}
