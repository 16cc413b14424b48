/** The signal that erases an entry of a conversation. */
import type { Caller } from "../../../protocol/caller-schemas.ts";
import type { NewEnvelope } from "../../../protocol/envelope.ts";
import { operationId } from "../../../protocol/ids.ts";
import type { Turn } from "./turn.ts";

/** Erases an entry of a turn that is over. */
export interface EraseEntry {
  type: "conversation.entry.erase";
  caller: Caller;
  erasure: Erasure;
  /** Words to the agents of the conversation. */
  envelopes: readonly NewEnvelope[];
}

/** Returns the operations with messages to other actors that may quote an erased entry: its own operation, and the extractions of memories. */
export function erasedOperations({ turn, item, turns }: Erasure): string[] {
  return turns.flatMap((one) => {
    const { extraction } = one.hooks ?? {};
    const own = one.n === turn ? [operationId(one, item)] : [];
    return extraction === undefined ? own : [...own, operationId(one, extraction)];
  });
}

export interface Erasure {
  /** Number of the turn. */
  readonly turn: number;
  readonly item: number;
  /** The turn and the turns that quote the entry, after the erasure. */
  readonly turns: readonly Turn[];
  /** The conversation's title goes: the entry has it. */
  readonly title?: true;
  /** Titles in the journal that are from the entry. */
  readonly formerTitles: readonly string[];
  /** Other content to remove: attachments without another reference, and conversations that a call opened. */
  readonly attachments: readonly string[];
  /** The attachments for the whole results of the attempts of an erased call. They are deleted even if a call has read a page of one. */
  readonly results: readonly string[];
  readonly conversations: readonly string[];
  /** The runs that a call started. Their workspaces are deleted. */
  readonly runs: readonly string[];
}
