/** The place of a replay in its recording: the recorded entries that have no cause yet, and the turn as made so far. Pure. */
import { isJsonObject, type JsonObject } from "../../../../shared/json.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import type { Operation } from "../operation.ts";
import type { Signal } from "../signals.ts";
import type { ConversationState } from "../state.ts";
import type { Turn } from "../turn.ts";
import type { RecordedEntry, Recording } from "./recording.ts";

/** Plans the decisions of a cause that no signal carries. */
export type Decide = (state: ConversationState, input: PlanInput) => AgentDecision[];

/** A possible cause of an entry: a signal, or the decisions of a step that began with another turn or with lost content. */
export type Cause =
  | { signal: Signal }
  | {
      decide: Decide;
      /** The content that is not stored, so the decision itself is not checked. */
      unchecked?: string;
    };

export interface Scene {
  recording: Recording;
  /** The recorded entries without a cause, the next entry first. Entries of this commit only. */
  rest: readonly RecordedEntry[];
  /** The turn as made so far; `undefined` before its start. */
  turn: Turn | undefined;
  now: number;
}

/** Returns the data of an entry; `{}` for entries without data. */
export function dataOf(entry: RecordedEntry | undefined): JsonObject {
  return isJsonObject(entry?.data) ? entry.data : {};
}

/** Returns a member of an entry's data that is a text; otherwise `""`. */
export function textIn(data: JsonObject, name: string): string {
  const { [name]: value } = data;
  return typeof value === "string" ? value : "";
}

export function operationAt(turn: Turn | undefined, item: number | undefined): Operation | undefined {
  return turn?.operations.find((operation) => operation.item === item);
}

/** Changes nothing. The step that takes it begins what is due. */
export const NOTHING_NEW: Signal = { type: "conversation.agent.readers", readers: [], readersSeq: -1 };
