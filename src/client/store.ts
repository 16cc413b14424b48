/**
 * The reducer of a conversation as a client sees it: one frame in, the next state out. Pure, without clock or I/O.
 *
 * CLIENT-1  A durable frame counts once: one whose `seq` is not above the state's changes nothing.
 * CLIENT-2  A partial text is always a beginning of what was streamed; the completed message replaces it whole.
 * CLIENT-3  Interim text becomes a thought of its turn and never a message; without any text it is nothing.
 * CLIENT-4  A message this client sent leaves `pending` only when it is recorded, or discarded by its sender.
 * CLIENT-5  A frame of a type this version does not know moves `seq` on and changes nothing else.
 * CLIENT-6  A result this client gave leaves `results` only when its call is over.
 */

import type { Frame } from "../protocol/frames.ts";
import type { MessageView } from "../protocol/views.ts";
import { defined } from "../shared/defined.ts";
import { rejectPending } from "./pending.ts";
import { rejectResult, settleResults } from "./results.ts";
import { fromSnapshot } from "./snapshot.ts";
import type { LiveConversation, OperationState, TurnItem, TurnState } from "./state.ts";
import { changeItem, changeTurn, dropItem, endTurn, mergeDelta, progressed, putItem } from "./turns.ts";

/** The state after a frame. */
export function applyFrame(state: LiveConversation, frame: Frame): LiveConversation {
  if (frame.type === "snapshot") return settleResults(fromSnapshot(state, frame.data, frame.seq ?? null));
  if (frame.seq === undefined) return reduce(state, frame);
  if (state.seq !== null && frame.seq <= state.seq) return state;
  return { ...settleResults(reduce(state, frame)), seq: frame.seq };
}

type LiveFrame = Exclude<Frame, { type: "snapshot" }>;
type FrameOf<Type extends LiveFrame["type"]> = Extract<LiveFrame, { type: Type }>;

function reduce(state: LiveConversation, frame: LiveFrame): LiveConversation {
  switch (frame.type) {
    case "conversation.updated":
      return updateConversation(state, frame);
    case "turn.started":
      return inTurn(state, frame, (turn) => ({
        ...turn,
        agentId: frame.data.agentId,
        createdAt: frame.time,
      }));
    case "turn.waiting":
      // What it waits for are operations that run at a client: they say so themselves.
      return state;
    case "turn.completed":
      return inTurn(state, frame, (turn) =>
        endTurn(turn, { status: "completed", completedAt: frame.time, ...frame.data }),
      );
    case "turn.failed":
      return inTurn(state, frame, (turn) =>
        endTurn(turn, { status: "failed", completedAt: frame.time, error: frame.data.error }),
      );
    case "turn.finalized":
      return frame.data.memoryExtractionStatus === "failed" ? noteFailedExtraction(state, frame) : state;
    case "message.user":
      return recordUserMessage(state, frame);
    case "message.started":
      return inTurn(state, frame, (turn) => startPartial(progressed(turn), frame));
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
      return inOperation(state, frame, (operation) => ({ ...operation, progress: frame.data.progress }));
    case "tool.completed":
      return inOperation(state, frame, (operation) => ({
        ...operation,
        state: "completed",
        result: frame.data.result,
      }));
    case "tool.failed":
      return inOperation(state, frame, (operation) => ({
        ...operation,
        state: "failed",
        error: frame.data.error,
      }));
    case "error":
      return noteError(state, frame);
    case "pong":
      return state;
    default:
      frame satisfies never;
      return state;
  }
}

/** Changes the frame's turn; a frame without a turn changes nothing. */
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
  change: (operation: OperationState) => OperationState,
): LiveConversation {
  return inTurn(state, frame, (turn) =>
    changeItem(progressed(turn), frame.operationId ?? "", (item) =>
      item.type === "tool" ? { ...item, operation: change(item.operation) } : item,
    ),
  );
}

function updateConversation(
  state: LiveConversation,
  { data }: FrameOf<"conversation.updated">,
): LiveConversation {
  if (state.conversation === null) return state;
  const { title = state.conversation.title, status } = data;
  return {
    ...state,
    conversation: { ...state.conversation, title, ...(isConversationStatus(status) ? { status } : {}) },
  };
}

function isConversationStatus(status?: string): status is "active" | "waiting" | "completed" | "failed" {
  return status !== undefined && ["active", "waiting", "completed", "failed"].includes(status);
}

function noteFailedExtraction(state: LiveConversation, frame: FrameOf<"turn.finalized">): LiveConversation {
  return inTurn(state, frame, (turn) => ({
    ...turn,
    issues: { ...turn.issues, memoryExtractionFailed: true },
  }));
}

function recordUserMessage(state: LiveConversation, frame: FrameOf<"message.user">): LiveConversation {
  const { messageId: id, turnId, time: createdAt, data } = frame;
  if (id === undefined || turnId === undefined) return state;
  const pending = state.pending.filter(({ clientId }) => clientId !== data.clientId);
  // Without a number it only says that the message was recorded before, at a place that may not be loaded.
  if (frame.seq === undefined) return { ...state, pending };
  const message: MessageView = { id, turnId, role: "user", createdAt, ...data };
  return { ...addMessage(state, frame, message), pending };
}

function completeMessage(state: LiveConversation, frame: FrameOf<"message.completed">): LiveConversation {
  const { messageId: id, turnId, time: createdAt } = frame;
  if (id === undefined || turnId === undefined) return state;
  const { agentId, content, interim } = frame.data;
  if (interim === true) {
    return inTurn(state, frame, (turn) =>
      content.trim() === ""
        ? dropItem(progressed(turn), id)
        : putItem(progressed(turn), { type: "thought", id, text: content }),
    );
  }
  return addMessage(state, frame, { id, turnId, role: "agent", content, createdAt, agentId });
}

function addMessage(state: LiveConversation, frame: LiveFrame, message: MessageView): LiveConversation {
  const item: TurnItem = { type: "message", id: message.id, message };
  return {
    ...inTurn(state, frame, (turn) => putItem(progressed(turn), item)),
    messages: [...state.messages, message],
  };
}

function startPartial(turn: TurnState, { messageId, data, time }: FrameOf<"message.started">): TurnState {
  if (messageId === undefined) return turn;
  return putItem(turn, {
    type: "partial",
    id: messageId,
    text: "",
    agentId: data.agentId,
    startedAt: time,
    restarted: false,
  });
}

/** A text whose start was not seen begins with a delta at offset 0: so a resumed stream brings it. */
function extendPartial(turn: TurnState, { messageId, data, time }: FrameOf<"message.delta">): TurnState {
  if (messageId === undefined || turn.status !== "active") return turn;
  const known = turn.items.some(({ id }) => id === messageId);
  if (!known && data.offset > 0) return turn;
  const extended = known
    ? turn
    : putItem(turn, {
        type: "partial",
        id: messageId,
        text: "",
        agentId: turn.agentId,
        startedAt: time,
        restarted: false,
      });
  return changeItem(progressed(extended), messageId, (item) => {
    if (item.type !== "partial") return item;
    const text = mergeDelta(item.text, data.offset, data.text);
    return text === item.text ? item : { ...item, text };
  });
}

function requestTool(turn: TurnState, frame: FrameOf<"tool.requested">): TurnState {
  const { operationId: id, data } = frame;
  if (id === undefined) return turn;
  const operation: OperationState = {
    id,
    turnId: turn.id,
    name: data.name,
    input: data.input,
    ...defined({ client: data.client }),
    state: "running",
  };
  return putItem(turn, { type: "tool", id, operation });
}

/** An error in a turn that goes on is a retry; one that refers to a message or result of ours rejects it. */
function noteError(state: LiveConversation, frame: FrameOf<"error">): LiveConversation {
  const { code, message, retriable = false, ref } = frame.data;
  if (frame.turnId !== undefined && frame.seq !== undefined) {
    const retry = { code, message, time: frame.time };
    return inTurn(state, frame, (turn) => ({ ...turn, retries: [...turn.retries, retry], retrying: true }));
  }
  const error = { code, message, retriable };
  if (ref !== undefined && state.pending.some(({ clientId }) => clientId === ref)) {
    return { ...state, pending: rejectPending(state.pending, ref, error) };
  }
  const rejected = ref === undefined ? null : rejectResult(state, ref, error);
  if (rejected !== null) return rejected;
  return { ...state, error };
}
