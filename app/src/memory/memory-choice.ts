/**
 * The memories that a reader wants to see. Pure.
 *
 * MEMVIEW-4  The choice is in the address of the page, so that a link or a reload keeps it.
 */
import { MEMORY_STATES, type MemoryFilter, type MemoryState } from "../../../src/protocol/memory.ts";

/** Texts of the form; an empty text sets no filter. */
export interface MemoryChoice {
  /** Searches with it, otherwise lists. */
  query: string;
  type: string;
  userId: string;
  /** Of lists: searches find current memories only. */
  state: MemoryState | "all";
}

export const NO_CHOICE: MemoryChoice = { query: "", type: "", userId: "", state: "current" };

/** Returns the choice without space around its texts. */
export function trimmedChoice({ query, type, userId, state }: MemoryChoice): MemoryChoice {
  return { query: query.trim(), type: type.trim(), userId: userId.trim(), state };
}

/** Returns the query of an address for a choice: empty, or with its question mark (MEMVIEW-4). */
export function searchOf({ query, type, userId, state }: MemoryChoice): string {
  const given = { q: query, type, user: userId, state: state === NO_CHOICE.state ? "" : state };
  const search = new URLSearchParams(Object.entries(given).filter(([, text]) => text !== ""));
  return search.size === 0 ? "" : `?${search}`;
}

/** Returns the choice of an address's query. Unknown members are left out. */
export function choiceOf(search: string): MemoryChoice {
  const given = new URLSearchParams(search);
  const text = (name: string) => given.get(name)?.trim() ?? "";
  const state = (["all", ...MEMORY_STATES] as const).find((each) => each === given.get("state"));
  return { query: text("q"), type: text("type"), userId: text("user"), state: state ?? NO_CHOICE.state };
}

/** Reports whether the choice leaves something out. */
export function isLimited({ query, type, userId, state }: MemoryChoice): boolean {
  return query !== "" || type !== "" || userId !== "" || state !== NO_CHOICE.state;
}

/** Returns the filter of a request, without the states. */
export function filterOf({
  type,
  userId,
}: Pick<MemoryChoice, "type" | "userId">): Pick<MemoryFilter, "type" | "subject"> {
  return { ...(type === "" ? {} : { type }), ...(userId === "" ? {} : { subject: { userId } }) };
}

export function statesOf({ state }: Pick<MemoryChoice, "state">): MemoryState[] {
  return state === "all" ? [...MEMORY_STATES] : [state];
}
