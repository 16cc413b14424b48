/**
 * Journal entries as wire frames. Pure: the same entries and turns give the same frames, live or replayed.
 */
import type { AskView } from "../../../protocol/agent-call.ts";
import type { Budget, BudgetExcess } from "../../../protocol/budget.ts";
import { type Frame, PROTOCOL_VERSION } from "../../../protocol/frames.ts";
import { messageId, operationId, type TurnKey, turnId } from "../../../protocol/ids.ts";
import type { Participant } from "../../../protocol/participants.ts";
import type { TurnOrder } from "../../../protocol/views.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject } from "../../../shared/json.ts";
import { toIso } from "../../../shared/time.ts";
import { runMark } from "./called-workflow.ts";
import type { JournalEntry, JournalRow } from "./journal-entry.ts";
import { turnSpending } from "./ledger.ts";
import { answeredBy, shownCall } from "./shown-call.ts";
import { type ConversationIdentity, chainOf } from "./state.ts";
import { issuesOf, type Turn } from "./turn.ts";
import { outputOf } from "./turn-events.ts";
import { agentMark, clientMark, idsOf, isInterim, taskMark, wireError } from "./view-members.ts";

/** Returns a turn with its content; `undefined` if its content was erased. */
export type TurnLookup = (n: number) => Turn | undefined;

/**
 * Returns the frames of a row's entries with a number above `after`. `keyOf` names turns without loaded content, which suffices for entries
 * after the end of a turn.
 */
export function framesOf(
  row: JournalRow,
  after: number,
  record: Pick<ConversationIdentity, "id" | "agents" | "call">,
  turnOf: TurnLookup,
  keyOf: (n: number) => TurnKey | undefined = turnOf,
): Frame[] {
  const time = toIso(row.at);
  return row.entries.flatMap((entry, index) => {
    const seq = row.seq + index;
    if (seq <= after) return [];
    const base = { v: PROTOCOL_VERSION, seq, time } as const;
    if (entry.turn === undefined) return conversationFrame(entry, base) ?? [];
    if (entry.type === "turn.finalized") return finalizedFrame(entry, keyOf(entry.turn), base) ?? [];
    const turn = turnOf(entry.turn);
    return turn === undefined ? [] : (frameOf(entry, turn, record, base) ?? []);
  });
}

/** Returns the frame of an entry without a turn. */
function conversationFrame(
  { type, data }: JournalEntry,
  base: { v: 1; seq: number; time: string },
): Frame | null {
  switch (type) {
    case "conversation.updated":
      return { ...base, type, data: changesOf(data) };
    case "conversation.cancelled":
      return { ...base, type: "conversation.updated", data: { gate: "cancelled" } };
    case "conversation.resumed":
      return { ...base, type: "conversation.updated", data: { gate: "idle" } };
    case "conversation.waiting":
      return { ...base, type: "conversation.updated", data: { status: "waiting" } };
    case "conversation.active":
      return { ...base, type: "conversation.updated", data: { status: "active" } };
    case "participant.joined":
    case "participant.left":
      // SAFETY: the reducer wrote the entry's data.
      return {
        ...base,
        type,
        data: { participant: (data as unknown as { participant: Participant }).participant },
      };
    case "conversation.ended":
      return {
        ...base,
        type: "conversation.updated",
        data: { status: text(data, "status") === "failed" ? "failed" : "completed" },
      };
    case "conversation.signal.refused": {
      const [code, message, ref] = [text(data, "code"), text(data, "message"), text(data, "id")];
      const named = ref === "" ? {} : { ref };
      return { ...base, type: "error", data: { code, message, retriable: false, ...named } };
    }
    case "memory_extraction.failing": {
      const why = text(data, "message");
      const message = `Nothing is saved to memory: the extraction failed for several turns in a row. ${why}`;
      return {
        ...base,
        type: "error",
        data: { code: "MEMORY_EXTRACTION_FAILING", message, retriable: false },
      };
    }
    default:
      return null;
  }
}

/** Returns the changed settings of a conversation. */
function changesOf(data: JournalEntry["data"]): Extract<Frame, { type: "conversation.updated" }>["data"] {
  // SAFETY: the reducer wrote the entry's data.
  const { turns, orchestration, budget, budgetLeft } = data as {
    turns?: TurnOrder;
    orchestration?: boolean;
    budget?: Budget | null;
    budgetLeft?: Budget;
  };
  return defined({ turns, orchestration, budget, budgetLeft });
}

/** Returns the conversation's budget at the end of a turn; `{}` without a budget. */
function leftOf(data: JournalEntry["data"]): { budgetLeft?: Budget } {
  // SAFETY: the reducer wrote the entry's data.
  const { budgetLeft } = (data ?? {}) as { budgetLeft?: Budget };
  return defined({ budgetLeft });
}

function frameOf(
  entry: JournalEntry,
  turn: Turn,
  record: Pick<ConversationIdentity, "id" | "agents" | "call">,
  base: { v: 1; seq: number; time: string },
): Frame | null {
  const { type, item, data } = entry;
  const common = { ...base, ...idsOf(entry, turn) };
  const { agentId, caller } = turn;
  const client = defined({ clientId: turn.clientId });
  const spent = () => ({ spent: turnSpending(chainOf(record, agentId), turn) });
  const operation = () => turn.operations.find((candidate) => candidate.item === item);
  const did = () => taskMark(operation() ?? {});
  const ran = () => {
    const found = operation();
    return found === undefined ? {} : runMark(record, turn, found);
  };
  const called = () => {
    const found = operation();
    return found === undefined ? {} : { ...agentMark(turn, found), ...ran() };
  };
  switch (type) {
    case "entry.erased":
      return { ...common, ...erasedIds(turn, item ?? 0), type, data: {} };
    case "turn.started":
      return {
        ...common,
        type,
        data: { ...client, agentId, ...(caller.type === "user" ? {} : { caller }) },
      };
    case "turn.queued":
      // SAFETY: the reducer wrote the entry's data.
      return { ...common, type, data: { position: (data as { position: number }).position } };
    case "turn.waiting":
      return {
        ...common,
        type,
        data: { reason: waitReason(data) },
      };
    case "turn.completed":
      return {
        ...common,
        type,
        data: {
          ...issuesOf(turn),
          ...defined({ silent: turn.silent, output: outputOf(turn) }),
          ...spent(),
          ...leftOf(data),
        },
      };
    case "turn.failed":
      return { ...common, type, data: { error: wireError(turn.error), ...spent(), ...leftOf(data) } };
    case "message.user":
      return {
        ...common,
        type,
        data: {
          ...client,
          content: turn.input,
          ...(caller.type === "agent" ? { agentId: caller.agentId } : {}),
          ...(caller.type === "workflow" ? { runId: caller.runId } : {}),
        },
      };
    case "message.started":
      return { ...common, type, data: { agentId } };
    case "message.reset":
      return { ...common, type, data: { reason: text(data, "reason") } };
    case "message.completed": {
      const content = turn.replies.find((reply) => reply.item === item)?.text ?? "";
      return { ...common, type, data: { agentId, content, ...messageMarks(data) } };
    }
    case "budget.exceeded":
      // SAFETY: the reducer wrote the entry's data.
      return { ...common, type, data: data as unknown as BudgetExcess };
    case "llm.call.failed":
    case "tool.call.failed": {
      const [code, message] = [text(data, "code"), text(data, "message")];
      return { ...common, type: "error", data: { code, message, retriable: true } };
    }
    case "tool.requested": {
      const { name = "", input = {}, target, mode } = operation() ?? {};
      const marks = { ...clientMark(target), ...called() };
      return { ...common, type, data: { name, input, async: mode === "async", ...marks } };
    }
    case "approval.requested": {
      const of = askOf(data);
      if (of !== undefined) {
        const { name, input = {}, modelInput, target, rule, requester, expiresAt } = of;
        const shown = defined({ modelInput, target, rule, requester });
        return { ...common, type, data: { name, input, ...shown, expiresAt, of } };
      }
      const asking = operation();
      const shown = asking === undefined ? { input: {} } : shownCall(chainOf(record, agentId), asking);
      const { name = "" } = asking ?? {};
      const by = asking && turn ? answeredBy(record, turn, asking) : {};
      return { ...common, type, data: { name, ...shown, expiresAt: text(data, "expiresAt"), ...by } };
    }
    case "approval.resolved":
      // SAFETY: the reducer wrote the entry's data.
      return { ...common, type, data: data as unknown as Extract<Frame, { type: typeof type }>["data"] };
    case "work.held":
      return { ...common, type, data: ran() };
    case "work.released":
      return { ...common, type, data: {} };
    case "tool.deferred":
      return { ...common, type, data: { expiresAt: text(data, "expiresAt") } };
    case "tool.completed":
      return {
        ...common,
        type,
        data: { result: operation()?.result?.result ?? null, ...called(), ...did() },
      };
    case "tool.failed":
      return {
        ...common,
        type,
        data: { error: wireError(operation()?.result?.error), ...called(), ...did() },
      };
    case "tool.cancelled":
      return { ...common, type, data: { error: wireError(operation()?.result?.error) } };
    case "conversation.started":
    case "conversation.updated":
    case "conversation.cancelled":
    case "conversation.resumed":
    case "conversation.waiting":
    case "conversation.active":
    case "conversation.ended":
    case "conversation.readers":
    case "conversation.queue.received":
    case "conversation.queue.drained":
    case "conversation.queue.overflow":
    case "conversation.signal.refused":
    case "participant.joined":
    case "participant.left":
    case "context.compaction.started":
    case "context.compaction.failed":
    case "context.compacted":
    case "turn.finalized":
    case "turn.resumed":
    case "turn.unasked":
    case "budget.leased":
    case "tool.interrupted":
    case "tool.late":
    case "agent_call.started":
    case "agent_call.completed":
    case "agent_call.failed":
    case "agent_call.charged":
    case "workflow_run.started":
    case "subagent.requested":
    case "subagent.started":
    case "subagent.stopped":
    case "workflow_run.charged":
    case "context_assembly.started":
    case "context_assembly.completed":
    case "context_assembly.failed":
    case "memory.recalled":
    case "memory_extraction.started":
    case "memory_extraction.resumed":
    case "memory_extraction.completed":
    case "memory_extraction.failed":
    case "memory_extraction.failing":
    case "memory_extraction.applied":
    case "memory_extraction.refused":
    case "task.dispatched":
    case "task.event":
    case "task.metric":
    case "task.completed":
    case "task.failed":
      return null;
    default:
      return type satisfies never;
  }
}

/** Returns the id of an erased item: a message id, or an operation id. */
function erasedIds(turn: Turn, item: number): { messageId?: string; operationId?: string } {
  const isCall = turn.operations.some((operation) => operation.item === item);
  return isCall ? { operationId: operationId(turn, item) } : { messageId: messageId(turn, item) };
}

function finalizedFrame(
  { data }: JournalEntry,
  turn: TurnKey | undefined,
  base: { v: 1; seq: number; time: string },
): Frame | null {
  if (turn === undefined) return null;
  const memoryExtractionStatus = extractionStatus(data);
  return { ...base, turnId: turnId(turn), type: "turn.finalized", data: { memoryExtractionStatus } };
}

/** Returns the outcome of a turn's extraction from the entry's data; entries without data are of agents without one. */
function extractionStatus(data: JournalEntry["data"]): "completed" | "failed" | "skipped" {
  const status = text(data, "memoryExtractionStatus");
  return status === "completed" || status === "failed" ? status : "skipped";
}

/** Returns the marks of a completed message from its entry's data. */
function messageMarks(data: JournalEntry["data"]): { interim?: true; stopped?: true; notice?: true } {
  const isMarked = (mark: string) => isJsonObject(data) && data[mark] === true;
  return {
    ...(isInterim(data) ? { interim: true } : {}),
    ...(isMarked("stopped") ? { stopped: true } : {}),
    ...(isMarked("notice") ? { notice: true } : {}),
  };
}

function waitReason(data: JournalEntry["data"]): Extract<Frame, { type: "turn.waiting" }>["data"]["reason"] {
  const reason = text(data, "reason");
  return reason === "operations" || reason === "approval" ? reason : "client-tools";
}

/** Returns the request of an agent below that an entry's data tell of; `undefined` for a request of the conversation's own. */
function askOf(data: JournalEntry["data"]): AskView | undefined {
  // SAFETY: the reducer wrote the entry's data.
  return ((data ?? {}) as { of?: AskView }).of;
}

/** Returns a frame that is not a durable fact. */
export function ephemeralFrame<
  Type extends
    | "message.delta"
    | "message.user"
    | "tool.progress"
    | "tool.claimed"
    | "pong"
    | "error"
    | "mark",
>(
  type: Type,
  data: Extract<Frame, { type: Type }>["data"],
  ids: { turnId?: string; messageId?: string; operationId?: string },
  now: number,
): Frame {
  // SAFETY: `type` and `data` belong together by this function's own signature.
  return { v: PROTOCOL_VERSION, type, ...ids, time: toIso(now), data } as Frame;
}

function text(data: JournalEntry["data"], key: string): string {
  const value = isJsonObject(data) ? data[key] : undefined;
  return typeof value === "string" ? value : "";
}
