/**
 * The templates of sub-agents, and the journal's entries of their lives. Pure.
 *
 * SPAWN-7  The journal records each call of a sub-agent as `subagent.requested`, and each conversation that it opens as
 *          `subagent.started`. The commit that ends the call or its attempt has `subagent.stopped` with the reason.
 */
import { agentTarget } from "../../../library/tools/agent-tool.ts";
import type { ToolResult } from "../../../protocol/executor-api.ts";
import type { SubAgentTemplate } from "../../../protocol/sub-agent.ts";
import { defined } from "../../../shared/defined.ts";
import type { JsonObject } from "../../../shared/json.ts";
import type { JournalEntry } from "./journal-entry.ts";
import type { Operation } from "./operation.ts";
import { type ConversationIdentity, chainOf } from "./state.ts";
import type { Turn } from "./turn.ts";
import { agentMember } from "./view-members.ts";

/** The reason why a sub-agent stopped. `denied`: a rule or a person refused it. `expired`: its time was over. */
type StopReason = "completed" | "failed" | "cancelled" | "expired" | "denied";

/** Returns the template of the sub-agents that a tool of an agent spawns; `undefined` for other tools. */
export function templateOf(
  record: ConversationIdentity,
  agentId: string,
  tool: string,
): SubAgentTemplate | undefined {
  const pinned = chainOf(record, agentId).tools.find(({ definition }) => definition.name === tool);
  return agentTarget(pinned?.definition.target)?.template;
}

/** Returns the entry of a model's request for a sub-agent, and the entry of its refusal. Returns an empty list for other calls. */
export function requestedEntries(
  record: ConversationIdentity,
  turn: Turn,
  operation: Operation,
): { requested: JournalEntry[]; refused: JournalEntry[] } {
  const { result } = operation;
  return {
    requested: entries(record, turn, operation, "subagent.requested"),
    refused: result === undefined ? [] : stoppedEntries(record, turn, operation, result),
  };
}

/** Returns the entry of the conversation that a call of a sub-agent opens. Returns an empty list for other calls. */
export function startedEntries(
  record: ConversationIdentity,
  turn: Turn,
  operation: Operation,
): JournalEntry[] {
  const { conversationId } = agentMember(turn, operation).agent ?? {};
  return entries(record, turn, operation, "subagent.started", defined({ conversationId }));
}

/** Returns the entry of a call of a sub-agent that ends with a result. `operation` does not have the result yet. */
export function stoppedEntries(
  record: ConversationIdentity,
  turn: Turn,
  operation: Operation,
  { error }: Pick<ToolResult, "error">,
): JournalEntry[] {
  const data = { reason: reasonOf(operation, error), ...defined({ code: error?.code }) };
  return entries(record, turn, operation, "subagent.stopped", data);
}

/** Returns the entry of a failed attempt before its retry. Returns an empty list if no sub-agent worked. */
export function repeatedEntries(
  record: ConversationIdentity,
  turn: Turn,
  operation: Operation | undefined,
  { code }: { code: string },
): JournalEntry[] {
  if (operation?.status !== "dispatched") return [];
  return entries(record, turn, operation, "subagent.stopped", { reason: "failed", code });
}

/** Returns the entry of a call of a sub-agent if the turn ends before the call. `why` is the reason that a person gave. */
export function cancelledEntries(
  record: ConversationIdentity,
  turn: Turn,
  operation: Operation,
  why: string | undefined,
): JournalEntry[] {
  const data = { reason: "cancelled", code: "CANCELLED", ...defined({ message: why }) };
  return entries(record, turn, operation, "subagent.stopped", data);
}

function entries(
  record: ConversationIdentity,
  turn: Turn,
  { name, item }: Operation,
  type: JournalEntry["type"],
  data: JsonObject = {},
): JournalEntry[] {
  const template = templateOf(record, turn.agentId, name)?.name;
  return template === undefined ? [] : [{ type, turn: turn.n, item, data: { template, ...data } }];
}

function reasonOf({ status, approval }: Operation, error: ToolResult["error"]): StopReason {
  if (error === undefined) return "completed";
  if (error.code === "TIMEOUT" || approval?.outcome === "expired") return "expired";
  if (error.code === "CANCELLED") return "cancelled";
  return status === "dispatched" && error.code !== "PERMISSION_DENIED" ? "failed" : "denied";
}
