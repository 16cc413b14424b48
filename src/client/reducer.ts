/**
 * The reducer of a client's state: maps the state and one frame to the next state. Pure, without clock or I/O.
 *
 * CLIENT-1  A durable frame applies once. A frame with a `seq` up to the state's is a no-op.
 * CLIENT-2  A partial text is always a prefix of the streamed text. The completed message replaces it as a whole.
 * CLIENT-3  Interim text becomes a thought of its turn, never a message. Empty interim text is removed.
 * CLIENT-5  A frame of an unknown type only advances `seq`.
 */
import type { AskView } from "../protocol/agent-call.ts";
import type { Budget } from "../protocol/budget.ts";
import type { ConversationView, MessageView } from "../protocol/conversation-schemas.ts";
import type { Frame } from "../protocol/frames.ts";
import type { Participant } from "../protocol/participants.ts";
import { defined } from "../shared/defined.ts";
import { withoutItem, withoutMessage } from "./erased.ts";
import { dropPending, refuseStop, reject, settleResults, settleStops } from "./outbox.ts";
import { fromSnapshot } from "./snapshot.ts";
import { isStopped, type LiveConversation, type OperationState, type TurnState } from "./state.ts";
import {
  changeItem,
  changeOperation,
  changeTurn,
  dropItem,
  endTurn,
  mergeDelta,
  nextAttempt,
  partialItem,
  progressed,
  putItem,
  transcriptItem,
} from "./turns.ts";

/** The code of the error that a later extraction clears. */
const EXTRACTION_FAILING = "MEMORY_EXTRACTION_FAILING";

/**
 * Returns the state after a frame.
 *
 * @example
 * let state = initialState;
 * for await (const frame of client.streamTurn(id, { content: "Hello" })) state = applyFrame(state, frame);
 */
export function applyFrame(state: LiveConversation, frame: Frame): LiveConversation {
  if (frame.type === "snapshot") return settle(fromSnapshot(state, frame.data, frame.seq ?? null));
  if (frame.seq === undefined) return reduce(state, frame);
  if (state.seq !== null && frame.seq <= state.seq) return state;
  return { ...settle(reduce(state, frame)), seq: frame.seq };
}

function settle(state: LiveConversation): LiveConversation {
  return settleStops(settleResults(withGate(state)));
}

/** Shows a conversation as running while turns are active, as the server's views do. */
function withGate(state: LiveConversation): LiveConversation {
  const { conversation } = state;
  if (conversation === null || isStopped(state)) return state;
  const gate = state.turns.some(({ status }) => status === "active") ? "running" : "idle";
  return gate === conversation.gate ? state : { ...state, conversation: { ...conversation, gate } };
}

type LiveFrame = Exclude<Frame, { type: "snapshot" }>;
type FrameOf<Type extends LiveFrame["type"]> = Extract<LiveFrame, { type: Type }>;

function reduce(state: LiveConversation, frame: LiveFrame): LiveConversation {
  switch (frame.type) {
    case "conversation.updated":
      return updateConversation(state, frame);
    case "participant.joined":
    case "participant.left":
      return changeParticipants(state, frame);
    case "turn.started":
      return inTurn(state, frame, (turn) => ({
        ...turn,
        agentId: frame.data.agentId,
        createdAt: frame.time,
        ...defined({ caller: frame.data.caller }),
      }));
    case "turn.completed": {
      const { budgetLeft: _left, ...data } = frame.data;
      return inTurn(spent(state, frame), frame, (turn) =>
        endTurn(turn, { status: "completed", completedAt: frame.time, ...data }),
      );
    }
    case "turn.failed":
      return inTurn(spent(state, frame), frame, (turn) =>
        endTurn(turn, {
          status: "failed",
          completedAt: frame.time,
          error: frame.data.error,
          ...defined({ spent: frame.data.spent }),
        }),
      );
    case "turn.finalized":
      if (frame.data.memoryExtractionStatus === "completed" && state.error?.code === EXTRACTION_FAILING)
        return { ...state, error: null };
      if (frame.data.memoryExtractionStatus !== "failed") return state;
      return inTurn(state, frame, (turn) => ({
        ...turn,
        issues: { ...turn.issues, memoryExtractionFailed: true },
      }));
    case "message.user":
      return recordUserMessage(state, frame);
    case "message.started":
      return inTurn(state, frame, ({ phase: _over, ...turn }) => startPartial(progressed(turn), frame));
    case "message.delta":
      return inTurn(state, frame, (turn) => extendPartial(turn, frame));
    case "message.reset":
      return inTurn(state, frame, (turn) =>
        changeItem(turn, frame.messageId ?? "", (item) =>
          item.type === "partial" ? { ...item, text: "", restarted: true } : item,
        ),
      );
    case "message.completed":
      return completeMessage(state, frame);
    case "tool.requested":
      return inTurn(state, frame, (turn) => requestTool(progressed(turn), frame));
    case "tool.progress":
      return inOperation(state, frame, { progress: frame.data.progress });
    case "approval.requested": {
      const { expiresAt, rule, requester, policy, elicitation, of, name: _, ...shown } = frame.data;
      if (of !== undefined) return withAsks(state, frame, (asks) => [...asks.filter(isOther(of)), of]);
      const approval = { expiresAt, ...defined({ rule, requester, policy, elicitation }) };
      return inOperation(state, frame, { state: "awaiting_approval", approval, ...shown });
    }
    case "approval.resolved":
      if (frame.data.of !== undefined) {
        const { of } = frame.data;
        return withAsks(state, frame, (asks) => asks.filter(isOther(of)));
      }
      return resolveApproval(state, frame);
    case "work.held":
      return inOperation(state, frame, { ...frame.data, held: true });
    case "work.released":
      return release(state, frame);
    case "tool.deferred":
      return inOperation(state, frame, { deferredUntil: frame.data.expiresAt });
    case "tool.completed":
      return inOperation(state, frame, { state: "completed", ...frame.data });
    case "tool.failed":
      return inOperation(state, frame, { state: "failed", ...frame.data });
    case "tool.cancelled":
      return inOperation(state, frame, { state: "cancelled", error: frame.data.error });
    case "error":
      return noteError(state, frame);
    case "entry.erased":
      return inTurn(withoutMessage(state, frame), frame, (turn) => withoutItem(turn, frame));
    case "turn.queued":
      return inTurn(state, frame, (turn) => ({ ...turn, phase: "queued" as const }));
    case "turn.waiting":
      // The operations of the turn show the client's work.
      if (frame.data.reason === "client-tools")
        return inTurn(state, frame, ({ phase: _over, ...turn }) => turn);
      return inTurn(state, frame, (turn) => ({ ...turn, phase: "waiting" as const }));
    case "budget.exceeded": // The error of the turn reports the budget.
    case "pong":
    case "tool.claimed": // The session settles it.
    case "mark": // The session answers it.
      return state;
    default:
      frame satisfies never;
      return state;
  }
}

/** Changes the turn of a frame. A frame without a turn is a no-op. */
function inTurn(
  state: LiveConversation,
  frame: LiveFrame,
  change: (turn: TurnState) => TurnState,
): LiveConversation {
  if (frame.turnId === undefined) return state;
  const seed = {
    id: frame.turnId,
    agentId: state.conversation?.agentId ?? "",
    createdAt: frame.time,
  };
  const turns = changeTurn(state.turns, seed, change);
  return turns === state.turns ? state : { ...state, turns };
}

function inOperation(
  state: LiveConversation,
  frame: LiveFrame,
  change: Partial<OperationState>,
): LiveConversation {
  return inTurn(state, frame, (turn) =>
    changeItem(progressed(turn), frame.operationId ?? "", (item) =>
      item.type === "tool" ? { ...item, operation: changeOperation(item.operation, change) } : item,
    ),
  );
}

/** Changes the requests for approval of the agent that an operation called. */
function withAsks(
  state: LiveConversation,
  frame: LiveFrame,
  change: (asks: readonly AskView[]) => AskView[],
): LiveConversation {
  return inTurn(state, frame, (turn) =>
    changeItem(turn, frame.operationId ?? "", (item) => {
      if (item.type !== "tool" || item.operation.agent === undefined) return item;
      const { asks: before = [], ...agent } = item.operation.agent;
      const asks = change(before);
      const called = asks.length === 0 ? agent : { ...agent, asks };
      return { ...item, operation: { ...item.operation, agent: called } };
    }),
  );
}

const isOther = (of: AskView) => (ask: AskView) => ask.operationId !== of.operationId;

/** Records the answer to a request for approval. A turn that waited for it continues. */
function resolveApproval(state: LiveConversation, frame: FrameOf<"approval.resolved">): LiveConversation {
  const { of: _, ...data } = frame.data;
  const approval = { ...data, at: frame.time };
  const isApproved = approval.outcome === "approved";
  const change = { approval, ...(isApproved ? { state: "running" as const } : {}) };
  const changed = inOperation(state, frame, change);
  if (!isApproved) return changed;
  return endWait(changed, frame);
}

/** Records that an operation no longer waits for a person. A turn that waited for it continues. */
function release(state: LiveConversation, frame: FrameOf<"work.released">): LiveConversation {
  const released = inTurn(state, frame, (turn) =>
    changeItem(progressed(turn), frame.operationId ?? "", (item) => {
      if (item.type !== "tool") return item;
      const { held: _over, ...operation } = item.operation;
      return { ...item, operation };
    }),
  );
  return endWait(released, frame);
}

/** Ends the wait of the turn that has an operation, unless the operation works in the background. */
function endWait(state: LiveConversation, frame: LiveFrame): LiveConversation {
  return inTurn(state, frame, (turn) => {
    const item = turn.items.find(({ id }) => id === frame.operationId);
    const { phase: _over, ...others } = turn;
    return item?.type === "tool" && item.operation.async ? turn : others;
  });
}

function updateConversation(
  state: LiveConversation,
  { data }: FrameOf<"conversation.updated">,
): LiveConversation {
  if (state.conversation === null) return state;
  const { title, gate, turns } = { ...state.conversation, ...data };
  const known = isConversationStatus(data.status) ? { status: data.status } : {};
  const { orchestration: before, ...others } = state.conversation;
  const isOn = data.orchestration ?? before ?? true;
  const conversation = {
    ...others,
    title,
    gate,
    turns,
    ...known,
    ...(isOn ? {} : { orchestration: false as const }),
  };
  return { ...state, conversation: withBudget(conversation, data) };
}

function changeParticipants(
  state: LiveConversation,
  { type, data: { participant } }: FrameOf<"participant.joined" | "participant.left">,
): LiveConversation {
  if (state.conversation === null) return state;
  const isOther = (one: Participant) => one.type !== participant.type || one.id !== participant.id;
  const others = state.conversation.participants.filter(isOther);
  const participants = type === "participant.joined" ? [...others, participant] : others;
  return { ...state, conversation: { ...state.conversation, participants } };
}

/** Returns the conversation with another budget or remainder. */
function withBudget(
  conversation: ConversationView,
  { budget, budgetLeft }: { budget?: Budget | null; budgetLeft?: Budget },
): ConversationView {
  if (budget === undefined) return budgetLeft === undefined ? conversation : { ...conversation, budgetLeft };
  const { budget: _budget, budgetLeft: _left, ...others } = conversation;
  return budget === null ? others : { ...others, budget, ...defined({ budgetLeft }) };
}

/** Records the remaining budget when a turn ends. */
function spent(state: LiveConversation, { data }: { data: { budgetLeft?: Budget } }): LiveConversation {
  const { conversation } = state;
  if (conversation === null || data.budgetLeft === undefined) return state;
  return { ...state, conversation: withBudget(conversation, { budgetLeft: data.budgetLeft }) };
}

function isConversationStatus(status?: string): status is "active" | "waiting" | "completed" | "failed" {
  return status !== undefined && ["active", "waiting", "completed", "failed"].includes(status);
}

function recordUserMessage(before: LiveConversation, frame: FrameOf<"message.user">): LiveConversation {
  const { messageId: id, turnId, time: createdAt, data } = frame;
  if (id === undefined || turnId === undefined) return before;
  const state = data.clientId === undefined ? before : dropPending(before, data.clientId);
  // A frame without `seq` only confirms an earlier recording. The place of that recording in the transcript may not be loaded.
  const { content, clientId, agentId, runId, regenerates, edits } = data;
  if (frame.seq === undefined || content === undefined) return state;
  if (agentId !== undefined)
    return addMessage(state, frame, { id, turnId, role: "agent", createdAt, content, agentId });
  const who = defined({ clientId, runId, regenerates, edits });
  return addMessage(state, frame, { id, turnId, role: "user", createdAt, content, ...who });
}

function completeMessage(state: LiveConversation, frame: FrameOf<"message.completed">): LiveConversation {
  const { messageId: id, turnId, time: createdAt } = frame;
  if (id === undefined || turnId === undefined) return state;
  const { agentId, content, interim, stopped, notice } = frame.data;
  if (interim !== true) {
    const message = {
      id,
      turnId,
      role: "agent",
      content,
      createdAt,
      agentId,
      ...defined({ stopped, notice }),
    } as const;
    return addMessage(state, frame, message);
  }
  return inTurn(state, frame, (turn) =>
    content.trim() === ""
      ? dropItem(progressed(turn), id)
      : putItem(progressed(turn), { type: "thought", id, text: content }),
  );
}

function addMessage(state: LiveConversation, frame: LiveFrame, message: MessageView): LiveConversation {
  return {
    ...inTurn(state, frame, (turn) => putItem(progressed(turn), transcriptItem(message))),
    messages: [...state.messages, message],
  };
}

function startPartial(turn: TurnState, { messageId, data, time }: FrameOf<"message.started">): TurnState {
  return messageId === undefined ? turn : putItem(turn, partialItem(messageId, data.agentId, time));
}

/** A resumed stream repeats an unfinished text from offset 0 without `message.started`. */
function extendPartial(turn: TurnState, { messageId, data, time }: FrameOf<"message.delta">): TurnState {
  if (messageId === undefined || turn.status !== "active") return turn;
  const isKnown = turn.items.some(({ id }) => id === messageId);
  if (!isKnown && data.offset > 0) return turn;
  const started = isKnown ? turn : putItem(turn, partialItem(messageId, turn.agentId, time));
  return changeItem(progressed(started), messageId, (item) => {
    if (item.type !== "partial") return item;
    const text = mergeDelta(item.text, data.offset, data.text);
    return text === item.text ? item : { ...item, text };
  });
}

function requestTool(turn: TurnState, { operationId: id, data }: FrameOf<"tool.requested">): TurnState {
  if (id === undefined) return turn;
  const { name, input, client, agent, runId, async: isAsync } = data;
  const operation = {
    id,
    turnId: turn.id,
    name,
    input,
    state: "running",
    ...defined({ client, agent, runId }),
    ...(isAsync ? { async: true as const } : {}),
  } as const;
  return putItem(turn, { type: "tool", id, operation });
}

/** A durable error in a turn announces a retry. An error with `ref` rejects a pending message or result, or refuses a stop. */
function noteError(state: LiveConversation, frame: FrameOf<"error">): LiveConversation {
  const { code, message, retriable = false, ref } = frame.data;
  if (frame.turnId !== undefined && frame.seq !== undefined) {
    const retry = { code, message, time: frame.time };
    return inTurn(state, frame, (turn) => ({
      ...changeItem(turn, frame.operationId ?? "", nextAttempt),
      retries: [...turn.retries, retry],
      retrying: true,
    }));
  }
  const error = { code, message, retriable };
  const rejected = ref === undefined ? null : reject(state, ref, error);
  return rejected ?? refuseStop(state, ref, error) ?? { ...state, error };
}
