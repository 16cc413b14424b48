/** Newer messages of a turn's caller, in turns of their own (ORDER-4). Pure. */
import { joinedMarks, markMember } from "../../../../model/mark.ts";
import { plainText } from "../../../../shared/content.ts";
import { originOf } from "../caller.ts";
import { MAX_NOTED_TURNS } from "../conversation-limits.ts";
import type { PlanInput } from "../decisions.ts";
import { markOfText } from "../marks.ts";
import type { ConversationState } from "../state.ts";
import type { Addition, Turn } from "../turn.ts";
import { excerpt } from "./excerpt.ts";

/** The part of an addition that does not depend on its place. */
export type Newer = Omit<Addition, "after">;

/** Returns the number of the newest turn that a turn's model has seen; at first its own number. */
export function heardOf({ n, heard = n }: Pick<Turn, "n" | "heard">): number {
  return heard;
}

/** Returns newer messages of a turn's caller; `undefined` without newer messages. */
export function newerMessages(
  state: ConversationState,
  turn: Turn,
  { turns }: Pick<PlanInput, "turns">,
): Newer | undefined {
  const heard = heardOf(turn);
  const later = [...state.active.values()].filter(({ n }) => n > heard);
  const own = later.filter(({ caller }) => originOf(caller) === originOf(turn.caller)).map(({ n }) => n);
  const areAllActive = later.length === state.turns - heard;
  const stored = areAllActive ? [] : (turns?.after(heard, turn.caller) ?? []);
  const numbers = [...new Set([...own, ...stored])].sort((one, other) => one - other);
  if (numbers.length === 0) return undefined;
  const newest = numbers.slice(-MAX_NOTED_TURNS).flatMap((n) => state.active.get(n) ?? turns?.turn(n) ?? []);
  const messages = newest.map(({ input }) => excerpt(plainText(input)));
  const earlier = numbers.length - messages.length;
  const mark = joinedMarks(...newest.map(markOfText));
  return { messages, ...(earlier === 0 ? {} : { earlier }), ...markMember(mark) };
}
