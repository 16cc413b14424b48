/** Display texts of memories. Pure. */
import type { MemoryScope, MemoryState } from "../../../src/protocol/memory.ts";
import type {
  MemoryAuthor,
  MemoryLogEntry,
  MemorySearchResult,
  MemoryStatus,
  MemorySubject,
} from "../../../src/protocol/memory-schemas.ts";
import { momentOf } from "../format.ts";

export const STATE_TEXT: Record<MemoryState, string> = {
  current: "Current",
  ended: "Ended",
  archived: "Archived",
};

/** Explanations of the scopes. */
export const SCOPE_TEXT: Record<MemoryScope, string> = {
  agent: "Shared by all users of the agent",
  user: "Separate for each user",
  conversation: "Separate for each conversation",
};

/** Explanations of the states, for readers. */
export const STATE_MEANING: Record<MemoryState, string> = {
  current: "Searches find it.",
  ended: "It is no longer true. Searches skip it.",
  archived: "It is in the archive. Searches skip it.",
};

const CHANGE_TEXT: Record<MemoryLogEntry["change"], string> = {
  written: "Written",
  updated: "Changed",
  ended: "Ended",
  archived: "Archived",
  restored: "Restored",
};

/** Returns a change and its author, such as "Changed by ada". */
export function changeText({ change, by }: Pick<MemoryLogEntry, "change" | "by">): string {
  return `${CHANGE_TEXT[change]} ${authorText(by)}`;
}

function authorText(by: MemoryAuthor): string {
  switch (by.kind) {
    case "principal":
      return `by ${by.subject}`;
    case "tool":
      return "by the agent, in a conversation";
    case "task":
      return "by a task, in a conversation";
    case "extraction":
      return "from a conversation";
    case "run":
      return "by a run";
    case "consolidation":
      return "by consolidation";
    case "retention":
      return "by retention";
    case "import":
      return "by an import";
    default:
      return by satisfies never;
  }
}

/** Returns the subject of a memory, such as "About ada", or `undefined` if it has no subject. */
export function subjectText({ userId, conversationId }: MemorySubject): string | undefined {
  if (userId !== undefined) return `About ${userId}`;
  return conversationId === undefined ? undefined : "About one conversation";
}

/** Returns since when and until when a memory is true. */
export function validityText(
  { validFrom, validTo }: { validFrom: string; validTo?: string },
  now: Date,
  locales?: string,
): string {
  const from = `from ${momentOf(validFrom, now, locales)}`;
  return validTo === undefined ? from : `${from} until ${momentOf(validTo, now, locales)}`;
}

/** Returns a notice about a search without all vectors; `undefined` if all were compared. */
export function searchNotice(semantic: MemorySearchResult["semantic"]): string | undefined {
  switch (semantic) {
    case "all":
      return undefined;
    case "some":
      return "Some memories were compared by their words only: their vectors are not ready yet.";
    case "none":
      return "The memories were compared by their words only, not by meaning.";
    default:
      return semantic satisfies never;
  }
}

/** Returns the number of memories, such as "1,204 memories, 12 archived". */
export function countText(
  { memories, archived }: Pick<MemoryStatus, "memories" | "archived">,
  locales?: string,
) {
  const all = `${memories.toLocaleString(locales)} ${memories === 1 ? "memory" : "memories"}`;
  return archived === 0 ? all : `${all}, ${archived.toLocaleString(locales)} archived`;
}

/** Returns how texts are compared by meaning. */
export function embedderText(embedder: MemoryStatus["embedder"]): string {
  return embedder === null
    ? "Searches compare words only, because no model for meanings is set up"
    : `Searches compare words, and meanings with the model ${embedder.id}`;
}

/** Returns the pending work of the stores and its reason, or `undefined` if all work is done. */
export function pendingText(
  { records, embeddings, error, since }: MemoryStatus["pending"],
  now: Date,
  locales?: string,
) {
  const parts = [
    ...(records === 0
      ? []
      : [`${counted(records, "change is", "changes are", locales)} not copied to the stores yet`]),
    ...(embeddings === 0
      ? []
      : [`${counted(embeddings, "memory has", "memories have", locales)} no vector yet`]),
  ];
  if (parts.length === 0) return undefined;
  const when = since === undefined ? "" : `, since ${momentOf(since, now, locales)}`;
  const why = error === undefined ? "" : ` Last error: ${error}`;
  return `${parts.join(", ")}${when}.${why} No memory is lost: you can still read and search.`;
}

function counted(n: number, one: string, many: string, locales?: string): string {
  return `${n.toLocaleString(locales)} ${n === 1 ? one : many}`;
}
