/** Members of operations, messages and errors that frames and views share. Pure. */
import type { AskView, CallAsk } from "../../../protocol/agent-call.ts";
import { spendingView } from "../../../protocol/budget.ts";
import { calledConversationId, messageId, operationId, type TurnKey, turnId } from "../../../protocol/ids.ts";
import type { AgentCallView, WireError } from "../../../protocol/move-schemas.ts";
import type { TaskView } from "../../../protocol/task-summary.ts";
import { defined } from "../../../shared/defined.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import { isJsonObject } from "../../../shared/json.ts";
import { toIso } from "../../../shared/time.ts";
import type { JournalEntry } from "./journal-entry.ts";
import type { Operation, OperationTarget } from "./operation.ts";

export function idsOf({ type, item }: JournalEntry, turn: TurnKey) {
  const ids = { turnId: turnId(turn) };
  if (item === undefined || type === "entry.erased") return ids;
  return /^(?:tool|policy|task|approval|agent_call|work|context_assembly|memory_extraction)\./.test(type)
    ? { ...ids, operationId: operationId(turn, item) }
    : { ...ids, messageId: messageId(turn, item) };
}

/** Reports whether the data of a completed message's entry mark it as text beside tool calls. */
export function isInterim(data: JournalEntry["data"]): boolean {
  return isJsonObject(data) && data.interim === true;
}

/** Returns the marker of an operation that the client must run, as a member; `{}` for other operations. */
export function clientMember(target: OperationTarget | undefined): { client?: true } {
  return target === "client" ? { client: true } : {};
}

/** Returns the steps of an operation's task as a member; `{}` for other operations. */
export function taskMember({ task }: Pick<Operation, "task">): { task?: TaskView } {
  return task === undefined ? {} : { task };
}

/** Returns the agent that answers an operation as a member; `{}` for other operations. */
export function agentMember(turn: TurnKey, { item, agent, attempt }: Operation): { agent?: AgentCallView } {
  if (agent === undefined) return {};
  const { id, mode, template, spent, asks, jurisdiction } = agent;
  const opens =
    mode === "delegate" ? calledConversationId(operationId(turn, item), attempt, jurisdiction) : undefined;
  return {
    agent: {
      id,
      mode,
      ...defined({
        template,
        conversationId: opens,
        spent: spent && spendingView(spent),
        asks: asks?.map(askView),
      }),
    },
  };
}

/** Returns a request for approval of an agent below, as clients see it. */
export function askView({ expiresAt, ...ask }: CallAsk): AskView {
  return { ...ask, expiresAt: toIso(expiresAt) };
}

export function wireError(error: Pick<ErrorData, "code" | "message" | "retriable"> | undefined): WireError {
  const { code = "INTERNAL_ERROR", message = "An internal error occurred.", retriable = false } = error ?? {};
  return { code, message, retriable };
}
