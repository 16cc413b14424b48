/** The memories that a reader wants to see. Pure. */
import { MEMORY_STATES, type MemoryFilter, type MemoryState } from "../../../src/protocol/memory.ts";

/** Texts of the form; an empty one limits nothing. */
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
