/** Checks the ends of calls that come by RPC: of tools from the Executor, and of agents and workflows from actors of an application. */
import type { Amounts } from "../../../model/spending.ts";
import { type AgentOutcome, agentAnswerSchema, agentErrorSchema } from "../../../protocol/agent-call.ts";
import type { TaskResult, ToolResult } from "../../../protocol/executor-api.ts";
import { taskErrorSchema, taskResultSchema } from "../../../protocol/executor-api.ts";
import { workflowErrorSchema, workflowResultSchema } from "../../../protocol/workflow-call.ts";
import { defined } from "../../../shared/defined.ts";
import { validate } from "../../../shared/validation.ts";

/** The end of the run of a call. */
export interface RunEnd {
  operationId: string;
  attempt: number;
  result: ToolResult;
  spent?: Amounts;
}

export interface CallEndsPorts {
  takeResult(result: TaskResult): Promise<void>;
  takeRunEnd(ended: RunEnd): Promise<void>;
  takeAgentEnd(address: { operationId: string; attempt: number }, outcome: AgentOutcome): Promise<void>;
}

/** Each method throws `INVALID_INPUT`, and as the port does. */
export class CallEnds {
  constructor(private readonly ports: CallEndsPorts) {}

  taskResult(result: unknown): Promise<void> {
    return this.ports.takeResult(validate(taskResultSchema, result));
  }

  taskError(failure: unknown): Promise<void> {
    const { error, ...address } = validate(taskErrorSchema, failure);
    return this.ports.takeResult({ ...address, result: { tool_call_id: "", success: false, error } });
  }

  workflowResult(ended: unknown): Promise<void> {
    const { output, ...address } = validate(workflowResultSchema, ended);
    return this.ports.takeRunEnd({ ...address, result: { tool_call_id: "", success: true, result: output } });
  }

  workflowError(failure: unknown): Promise<void> {
    const { error, ...address } = validate(workflowErrorSchema, failure);
    return this.ports.takeRunEnd({ ...address, result: { tool_call_id: "", success: false, error } });
  }

  agentResult(answer: unknown): Promise<void> {
    const { text, ...address } = validate(agentAnswerSchema, answer);
    return this.ports.takeAgentEnd(address, { text });
  }

  agentError(failure: unknown): Promise<void> {
    const { error, partial, ...address } = validate(agentErrorSchema, failure);
    return this.ports.takeAgentEnd(address, { error, ...defined({ partial }) });
  }
}
