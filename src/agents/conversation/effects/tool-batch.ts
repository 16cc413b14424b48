/**
 * Runs the pending tool calls of one reply in the Executor and reports each result as a signal. Never throws: a call the
 * Executor gave no result for is `INTERNAL_ERROR`, or, if it is declared `once`, of unknown outcome.
 */

import type { VersionChain } from "../../../protocol/definitions.ts";
import type { TaskExecutor, ToolResult } from "../../../protocol/executor-api.ts";
import type { CallContext } from "../../../shared/identifiers.ts";
import type { Json } from "../../../shared/json.ts";
import { operationId } from "../core/ids.ts";
import { failure } from "../core/planning/tool-call.ts";
import { invokedTool } from "../core/planning/tool-target.ts";
import type { EffectSignal } from "../core/signals.ts";
import type { Operation, Turn } from "../core/state.ts";

export interface ToolBatchInput {
  chain: VersionChain;
  turn: Turn;
  operations: Operation[];
  context: CallContext;
  onResult: (signal: EffectSignal) => void;
  onProgress: (operationId: string, progress: Json) => void;
}

export async function performToolBatch(
  executor: TaskExecutor,
  { chain, turn, operations, context, onResult, onProgress }: ToolBatchInput,
  signal: AbortSignal,
): Promise<void> {
  const waiting = new Map(
    operations.map((operation) => [operationId(turn.stem, turn.n, operation.item), operation]),
  );
  const report = (id: string, operation: Operation, result: ToolResult) => {
    waiting.delete(id);
    onResult({ type: "conversation.tool.completed", turn: turn.n, item: operation.item, result });
  };
  try {
    const calls = [...waiting].map(([id, { toolCallId, tool, input, timeoutMs }]) => ({
      operationId: id,
      toolCallId,
      tool: invokedTool(chain, tool),
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
    const message =
      operation.effect === "once"
        ? `Outcome unknown: the connection to "${operation.name}" was lost and it may have taken effect.`
        : `The run of "${operation.name}" was lost.`;
    report(
      id,
      operation,
      failure(operation.toolCallId, "INTERNAL_ERROR", message, operation.effect !== "once"),
    );
  }
}
