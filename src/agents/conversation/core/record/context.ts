/**
 * The newest messages of a conversation, as its contexts show them. Pure.
 *
 * PROJ-6  A context is without the turns that a newer turn has replaced, as is the window of the model. The messages before these turns take
 *         their places.
 */
import type { JournalEntry } from "../journal-entry.ts";
import { isInterim } from "../view-members.ts";
import type { Fold, Numbered, Place } from "./fold.ts";

/** Messages of an `llm_context` and of a `canonical_llm_context`. */
const MAX_CONTEXT_MESSAGES = 40;

/** Returns the newest entries of shown turns that `isShown` accepts, ascending. `newestFirst` are the entries of the journal, descending. */
export function newestPlaces(
  newestFirst: Iterable<Numbered>,
  { hidden }: Pick<Fold, "hidden">,
  isShown: (entry: JournalEntry) => boolean,
): Place[] {
  const places: Place[] = [];
  for (const { entry, seq, at } of newestFirst) {
    const { type, turn, item = 0 } = entry;
    if (turn === undefined || !isShown(entry)) continue;
    if (hidden.some(([first, last]) => first <= turn && turn <= last)) continue;
    places.push({ type, turn, item, seq, at });
    if (places.length === MAX_CONTEXT_MESSAGES) break;
  }
  return places.reverse();
}

/** Reports whether an entry completes a message of the transcript. */
export function isMessage({ type, data }: JournalEntry): boolean {
  return type === "message.user" || (type === "message.completed" && !isInterim(data));
}

/** Reports whether an entry completes a message of the transcript, or is a state of a tool call. */
export function isMessageOrTool(entry: JournalEntry): boolean {
  return entry.type.startsWith("tool.") || isMessage(entry);
}
