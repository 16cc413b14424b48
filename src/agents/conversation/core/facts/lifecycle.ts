/** The conversation as a whole: its settings, its stops, its end, and erased entries. Pure. */
import type { Budget } from "../../../../protocol/budget.ts";
import type { Caller } from "../../../../protocol/caller-schemas.ts";
import type { TurnOrder } from "../../../../protocol/conversation-schemas.ts";
import type { NewEnvelope } from "../../../../protocol/envelope.ts";
import { messageId, operationId } from "../../../../protocol/ids.ts";
import type { MergeNote } from "../../../../protocol/workspace.ts";
import { defined } from "../../../../shared/defined.ts";
import type { JsonObject } from "../../../../shared/json.ts";
import type { Erasure } from "../erase-entry.ts";
import type { ConversationGate, ConversationState } from "../state.ts";
import type { SeenKey, Transition } from "../transition.ts";
import { type EntryOfTurn, type FrameBody, noted, silent } from "./fact.ts";

export const lifecycle = {
  /** `automatic`: the title is from the first message, or from a model that describes the turn of `by`. */
  SET_TITLE(
    transition: Transition,
    { title, by, automatic }: { title: string | null; by: Caller; automatic?: true },
  ): Transition {
    const { state, membership = [] } = transition;
    const { automaticTitle: _before, ...record } = state.record;
    const isFirst = automatic === true && by.type !== "agent";
    const automaticTitle = isFirst || (title === null ? false : undefined);
    const titled = { ...state, record: { ...record, title, ...defined({ automaticTitle }) } };
    return noted(
      { ...transition, state: titled, membership },
      { type: "conversation.updated", data: { title, by, ...defined({ automatic }) } },
    );
  },

  SET_ORDER(transition: Transition, { order, by }: { order: TurnOrder; by: Caller }): Transition {
    const state = { ...transition.state, order };
    return noted({ ...transition, state }, { type: "conversation.updated", data: { turns: order, by } });
  },

  SET_ORCHESTRATION(transition: Transition, { on, by }: { on: boolean; by: Caller }): Transition {
    const { orchestration: _, ...others } = transition.state;
    const state: ConversationState = on ? others : { ...others, orchestration: false };
    const data = { orchestration: on, by };
    return noted({ ...transition, state }, { type: "conversation.updated", data });
  },

  NOTE_MERGE(transition: Transition, { merged, by }: { merged: MergeNote; by: Caller }): Transition {
    return noted(transition, { type: "conversation.updated", data: { merged, by } });
  },

  SET_GATE(
    transition: Transition,
    data: { gate: ConversationGate; by: Caller; reason?: string; correlationId?: string; causeId?: string },
  ): Transition {
    const { gate, by, reason, correlationId, causeId } = data;
    return noted(
      { ...transition, state: { ...transition.state, gate } },
      {
        type: gate === "cancelled" ? "conversation.cancelled" : "conversation.resumed",
        data: { ...stopData(by, reason), ...defined({ correlationId, causeId }) },
      },
    );
  },

  END_CONVERSATION(
    transition: Transition,
    { status, by, reason }: { status: "completed" | "failed"; by: Caller; reason?: string },
  ): Transition {
    const data = { status, ...stopData(by, reason) };
    const state = { ...transition.state, status };
    return noted({ ...transition, state }, { type: "conversation.ended", data });
  },

  /** Notes that an entry is erased. Its content leaves the store with the commit. */
  ERASE_ENTRY(transition: Transition, { erasure, by }: { erasure: Erasure; by: Caller }): Transition {
    const { turn, item, title } = erasure;
    const { state, membership = [], erased = [] } = transition;
    const { automaticTitle: _erased, ...record } = state.record;
    const untitled = { state: { ...state, record: { ...record, title: null } }, membership };
    return noted(
      { ...transition, ...(title && untitled), erased: [...erased, erasure] },
      { type: "entry.erased", turn, item, data: { by: { ...by } } },
    );
  },

  /** Remembers a signal that started no turn. */
  SEE_SIGNAL(transition: Transition, { caller, key, correlationId }: Omit<SeenKey, "turn">): Transition {
    const seen = { caller, key, ...defined({ correlationId }), turn: 0 };
    return { ...transition, keys: [...transition.keys, seen] };
  },

  /** Sends an envelope to another actor, beside a decision that gives a journal entry. */
  SEND(transition: Transition, { envelope }: { envelope: NewEnvelope }): Transition {
    return { ...transition, envelopes: [...transition.envelopes, envelope] };
  },
};

/** Returns who stopped or resumed something, and why. */
export function stopData(by: Caller, reason: string | undefined): JsonObject {
  return { by, ...defined({ reason }) };
}

/** The changed settings of a conversation. */
export interface Settings {
  title?: string | null;
  turns?: TurnOrder;
  orchestration?: boolean;
  budget?: Budget | null;
  budgetLeft?: Budget;
  merged?: MergeNote;
}

export const lifecycleFrames = {
  ...silent("conversation.started", "conversation.forked"),
  "conversation.updated": ({ title, turns, orchestration, budget, budgetLeft, merged }: Settings) =>
    updated(defined({ title, turns, orchestration, budget, budgetLeft, merged })),
  "conversation.cancelled": () => updated({ gate: "cancelled" }),
  "conversation.resumed": () => updated({ gate: "idle" }),
  "conversation.waiting": () => updated({ status: "waiting" }),
  "conversation.active": () => updated({ status: "active" }),
  "conversation.ended": ({ status }: { status: "completed" | "failed" }) => updated({ status }),
  "entry.erased": (_: unknown, { turn, item, operation }: EntryOfTurn): FrameBody => ({
    ...(operation === undefined
      ? { messageId: messageId(turn, item) }
      : { operationId: operationId(turn, item) }),
    type: "entry.erased",
    data: {},
  }),
};

function updated(data: Extract<FrameBody, { type: "conversation.updated" }>["data"]): FrameBody {
  return { type: "conversation.updated", data };
}
