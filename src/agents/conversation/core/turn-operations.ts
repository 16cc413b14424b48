/** Selections of the calls and the replies of a turn. Pure. */
import { isDue, isOpen, isSent, type Operation } from "./operation.ts";
import type { Reply, Turn } from "./turn.ts";

/** Returns the tool calls that the reply with this index requested. */
export function operationsOf({ operations }: Pick<Turn, "operations">, reply: number): Operation[] {
  return operations.filter((operation) => operation.reply === reply);
}

/** Returns the operations without a result. */
export function openOperations({ operations }: Pick<Turn, "operations">): Operation[] {
  return operations.filter(isOpen);
}

export function blockingOperations(turn: Pick<Turn, "operations">): Operation[] {
  return openOperations(turn).filter(({ mode }) => mode === "sync");
}

/** Returns the background operations with results that no cycle has got, including open operations. */
export function backgroundOperations({ operations }: Pick<Turn, "operations">): Operation[] {
  return operations.filter(({ mode, delivered }) => mode === "async" && delivered === undefined);
}

/** Returns the background operations with a result that no cycle has got. */
export function dueOperations({ operations }: Pick<Turn, "operations">): Operation[] {
  return operations.filter(isDue);
}

/** Returns the operations that the actor must run: open operations of code without an interrupted attempt and without a missing reservation. */
export function runnableOperations(turn: Pick<Turn, "operations">): Operation[] {
  return openOperations(turn).filter(
    ({ target, status, reserving }) => target === "code" && status === "pending" && reserving === undefined,
  );
}

/** Returns the open calls of agents that work in conversations of their own. */
export function openCalls(turn: Pick<Turn, "operations">): Operation[] {
  return openOperations(turn).filter(({ agent }) => agent?.mode === "delegate");
}

/** Returns the open calls that other actors answer by envelope: of agents that work in conversations of their own, and of runs. */
export function sentCalls(turn: Pick<Turn, "operations">): Operation[] {
  return openOperations(turn).filter(isSent);
}

export function joiningOperations(turn: Pick<Turn, "operations">): Operation[] {
  return openOperations(turn).filter(
    ({ agent, status }) => agent?.mode === "loop_in" && status === "pending",
  );
}

/** Returns the replies without tool calls: the agent's messages. */
export function agentReplies({ replies, operations }: Pick<Turn, "replies" | "operations">): Reply[] {
  const calling = new Set(operations.map(({ reply }) => reply));
  return replies.filter((_, index) => !calling.has(index));
}

/** Returns the last reply if it has no tool calls: it ended the turn, or the newest cycle; `undefined` otherwise. */
export function finalReply(turn: Pick<Turn, "replies" | "operations">): Reply | undefined {
  const last = turn.replies.length - 1;
  return operationsOf(turn, last).length > 0 ? undefined : turn.replies[last];
}
