/**
 * A turn as of one of its model calls. Pure.
 *
 * PROMPT-3  The calls of a turn have the numbers of its records, from 1. The call in progress is the last.
 * PROMPT-4  A turn as of a call has the replies before the call, and their tool calls with the results that the call could see.
 * PROMPT-5  `missing` names the parts of a request that the turn no longer has: `history` and `notes` of an earlier cycle, the history
 *           if it is unknown whether it was cut, and the parts that PROMPT-2 lists.
 */
import { recallLimits } from "../../../../library/memory/scope.ts";
import { maxMovesPerTurn } from "../../../../library/personas/persona.ts";
import type { TurnPrompt } from "../../../../protocol/prompt.ts";
import { openRecord } from "../calls.ts";
import type { Operation } from "../operation.ts";
import { type ConversationIdentity, chainOf } from "../state.ts";
import type { CallingTurn, CallRecord, Reply, Turn } from "../turn.ts";
import { isStuck } from "./repeats.ts";
import { isLastCall } from "./results.ts";

export interface TurnAsOfCall {
  number: number;
  turn: CallingTurn;
  /** The reply to the call; absent if it has none, or if the reply was withdrawn. */
  reply?: Reply;
  missing: ReadonlySet<TurnPrompt["missing"][number]>;
}

/** Returns the number of a turn's model calls, including the call in progress. */
export function callCount(turn: Turn): number {
  const isUnrecorded = turn.call !== null && openRecord(turn) === undefined;
  return (turn.calls?.length ?? 0) + (isUnrecorded ? 1 : 0);
}

/** Returns a turn as of its model call with this number; `undefined` without such a call. */
export function turnAsOf(record: ConversationIdentity, turn: Turn, number: number): TurnAsOfCall | undefined {
  const { call, calls = [], replies } = turn;
  if (call !== null && number === callCount(turn))
    return { number, turn: { ...turn, call }, missing: new Set(notRecalled(record, turn)) };
  const made = calls[number - 1];
  if (made === undefined) return undefined;
  const { item } = made;
  const index = repliesBefore(turn, item);
  const isLast = calls.findLastIndex((other) => other.item === item) === number - 1 && call?.item !== item;
  const reply = isLast ? replies.find((given) => given.item === item) : undefined;
  const isEarlier = isOfEarlierCycle(turn, index, item);
  const isHalved = halvedAt(turn, number);
  const { halved: _halved, paused: _paused, recalled, ...rest } = turn;
  const { kept, isWithdrawn } = withdrawnBefore(turn, number, index);
  const asOf: Turn = {
    ...rest,
    ...kept,
    ...(isHalved === false ? {} : { halved: true }),
    ...(recalled === undefined || isEarlier ? {} : { recalled }),
    replies: replies.slice(0, index),
    operations: turn.operations.filter((operation) => operation.reply < index).map(seenAt(made)),
  };
  const missing = {
    ...missingAfter(record, turn, isEarlier),
    withdrawn: isWithdrawn,
    history: isEarlier || isHalved === undefined,
  };
  const names = Object.entries(missing).flatMap(([name, is]) => (is ? [name] : []));
  return {
    number,
    turn: {
      ...asOf,
      call: {
        ...{ item, attempt: made.attempts, profile: made.profile, notBefore: made.startedAt },
        final: isFinal(record, asOf, item),
      },
    },
    ...(reply === undefined ? {} : { reply }),
    // SAFETY: the names are those of the line above and of `missingAfter`.
    missing: new Set(names as TurnPrompt["missing"]),
  };
}

function repliesBefore({ replies }: Pick<Turn, "replies">, item: number): number {
  return replies.filter((reply) => reply.item < item).length;
}

/** Reports whether a later cycle of the turn has begun since the call. */
function isOfEarlierCycle(turn: Turn, index: number, item: number): boolean {
  const { calls = [], call, operations } = turn;
  // A silent call ends a cycle without a reply.
  const later = [...calls, ...(call === null ? [] : [call])].filter((other) => other.item > item);
  return (
    operations.some(({ delivered }) => delivered !== undefined && delivered > index) ||
    later.some((other) => repliesBefore(turn, other.item) === index)
  );
}

/** Reports whether the history was cut to half for a call; `undefined` if that is unknown. */
function halvedAt({ halved, calls = [] }: Turn, number: number): boolean | undefined {
  if (halved === undefined) return false;
  const isRepeated = ({ attempts, finishedAt }: CallRecord) => attempts > 1 || finishedAt === undefined;
  const repeated = calls.flatMap((made, index) => (isRepeated(made) ? [index + 1] : []));
  const { length } = calls;
  if (number < (repeated[0] ?? length)) return false;
  return number >= (repeated.at(-1) ?? length) ? true : undefined;
}

/** Returns the withdrawn answers and the notes on newer messages before a call, and reports whether some are missing. */
function withdrawnBefore(
  { calls = [], repairs = [], additions = [], continuations = 0, taken = 0, status }: Turn,
  number: number,
  index: number,
): { kept: Partial<Turn>; isWithdrawn: boolean } {
  const answered = calls.slice(0, number - 1).filter(({ category }) => category === "none");
  // The answers that are no replies: withdrawn answers, and the paused parts of replies.
  const others = Math.max(0, answered.length - (index - taken));
  const here = answered.filter(({ item }) => item === calls[number - 1]?.item).length;
  const before = <Part extends { after: number }>(parts: readonly Part[]) => [
    ...parts.filter(({ after }) => after < index),
    ...parts.filter(({ after }) => after === index).slice(0, here),
  ];
  const kept = { repairs: before(repairs), additions: before(additions) };
  const own = [...kept.repairs, ...kept.additions].filter(({ after }) => after === index);
  return {
    kept: { ...kept, continuations: Math.min(continuations, others) },
    isWithdrawn: status === "active" ? own.length !== here : others > 0,
  };
}

/** Returns an operation as a call saw it: without a result of the background that came later. */
function seenAt({ startedAt }: CallRecord): (operation: Operation) => Operation {
  return (operation) => {
    const { mode, completedAt = 0, result: _result, ...open } = operation;
    return mode === "async" && completedAt > startedAt ? { ...open, mode } : operation;
  };
}

/** Reports whether a call got no tools, as the decisions that made the call did. */
function isFinal(record: ConversationIdentity, asOf: Turn, item: number): boolean {
  const { calls = [], operations, replies, taken = 0 } = asOf;
  if (calls[0]?.item === item)
    return taken > 0 && taken >= maxMovesPerTurn(chainOf(record, asOf.agentId).persona.definition) - 1;
  return isLastCall(record, asOf, replies.length) || isStuck(operations, replies.length);
}

/** Returns the parts that the cycle reads with its first call, which has no outcome yet. */
function notRecalled(
  record: ConversationIdentity,
  { agentId, recalled, request }: Turn,
): TurnPrompt["missing"] {
  if (recalled !== undefined || request !== undefined) return [];
  const persona = chainOf(record, agentId).persona.definition;
  return [
    ...(recallLimits(persona) === undefined ? [] : (["memories"] as const)),
    ...(persona.knowledge === undefined ? [] : (["notes"] as const)),
  ];
}

function missingAfter(
  record: ConversationIdentity,
  { agentId, status, recalled, recalledBefore = [], replyTo, noted, erased }: Turn,
  isEarlier: boolean,
): Partial<Record<TurnPrompt["missing"][number], boolean>> {
  const isOver = status !== "active";
  const { memory, knowledge } = chainOf(record, agentId).persona.definition;
  const hasNotes =
    record.agents.length > 1 || replyTo !== undefined || noted === true || knowledge !== undefined;
  const used = isEarlier ? recalledBefore : isOver ? (recalled?.used ?? []) : [];
  return {
    memories: used.length > 0,
    hook: memory?.contextAssembly !== undefined && (isOver || isEarlier),
    notes: isEarlier || (isOver && hasNotes),
    erased: erased !== undefined,
  };
}
