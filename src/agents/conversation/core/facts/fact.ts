/**
 * The form of the families of facts. A family has a function for each of its decisions: the parameter declares the data of the decision, and
 * the result has the next state and the entries of the journal. It also has the frame of each of its entries. Pure.
 */
import type { VersionChain } from "../../../../protocol/definitions.ts";
import type { Frame, FrameType } from "../../../../protocol/frames.ts";
import type { EntryType } from "../../../../protocol/journal.ts";
import { defined } from "../../../../shared/defined.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import type { Json } from "../../../../shared/json.ts";
import type { JournalEntry } from "../journal-entry.ts";
import type { Operation } from "../operation.ts";
import { type ConversationIdentity, type ConversationState, chainOf } from "../state.ts";
import { type Transition, withTurn } from "../transition.ts";
import type { Turn } from "../turn.ts";

/** A failure in a journal entry. */
export type FailureText = Pick<ErrorData, "code" | "message">;

/** Applies a decision about the conversation. */
export type Change<Data> = (transition: Transition, data: Data, now: number) => Transition;

/** Applies a decision about an active turn. */
export type TurnChange<Data> = (on: TurnStep, data: Data) => Transition;

/** A decision of a family about the conversation. */
export type DecisionOf<Family> = {
  [Type in keyof Family]: Family[Type] extends (on: never, data: infer Data, now: number) => Transition
    ? { type: Type } & Data
    : never;
}[keyof Family];

/** A decision of a family about an active turn. Its number is `turn`. */
export type TurnDecisionOf<Family> = DecisionOf<Family> & { turn: number };

/** An active turn that a decision changes. */
export class TurnStep {
  constructor(
    readonly transition: Transition,
    readonly turn: Turn,
    readonly now: number,
  ) {}

  get state(): ConversationState {
    return this.transition.state;
  }

  get record(): ConversationIdentity {
    return this.state.record;
  }

  get chain(): VersionChain {
    return chainOf(this.record, this.turn.agentId);
  }

  /** Number of the next entry. */
  get nextSeq(): number {
    return nextSeq(this.transition);
  }

  entry(type: EntryType, item?: number, data?: Json): JournalEntry {
    return { type, turn: this.turn.n, ...defined({ item, data }) };
  }

  change(members: Partial<Turn>, ...entries: JournalEntry[]): Transition {
    return this.replace({ ...this.turn, ...members }, ...entries);
  }

  replace(turn: Turn, ...entries: JournalEntry[]): Transition {
    return withTurn(this.transition, turn, entries);
  }

  withOperation(item: number, changed: (operation: Operation) => Operation): Turn {
    const operations = this.turn.operations.map((one) => (one.item === item ? changed(one) : one));
    return { ...this.turn, operations };
  }
}

export function nextSeq({ state, entries }: Transition): number {
  return state.seq + entries.length + 1;
}

export function noted(transition: Transition, ...entries: JournalEntry[]): Transition {
  return { ...transition, entries: [...transition.entries, ...entries] };
}

export interface EntryOfTurn {
  readonly turn: Turn;
  readonly item: number;
  /** The operation of the entry; `undefined` if the entry is about a message or a hook. */
  readonly operation: Operation | undefined;
  readonly record: Pick<ConversationIdentity, "id" | "agents" | "call">;
}

/** The content of a frame. The ids of a turn's entry are added to it. */
export type FrameBody = {
  [Type in FrameType]: Pick<Extract<Frame, { type: Type }>, "type" | "data" | "messageId" | "operationId">;
}[FrameType];

export type Shown<Data> = (data: Data, of: EntryOfTurn) => FrameBody;

/** Marks entries without a frame. */
export function silent<const Type extends EntryType>(...types: Type[]): Record<Type, null> {
  // SAFETY: the object has a member for each type.
  return Object.fromEntries(types.map((type) => [type, null])) as Record<Type, null>;
}
