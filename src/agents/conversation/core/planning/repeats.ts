/**
 * Repeated calls: the same call with the same result again and again. Pure.
 *
 * REPEAT-1  Two calls of a turn are the same if tool and input are equal. The order of members does not matter. A call is repeated
 *           if its result is equal, too. Equal calls of one reply, or of one cycle's late results, count once: the model has
 *           seen no result in between.
 * REPEAT-2  When a call has had the same result for the third time, and each time after that, a note follows the results.
 * REPEAT-3  When it has had the same result for the fifth time, the model's next call is a final one: it gets no tools. A
 *           later cycle of the turn gets them back, until the call is repeated once more.
 * REPEAT-5  After three calls of a tool in a row that timed out, the turn calls this tool no more.
 * REPEAT-4  Notes depend on the results before them only, so later requests of a cycle repeat them unchanged.
 */
import type { ContextMessage } from "../../../../model/messages.ts";
import { canonicalJson, type Json } from "../../../../shared/json.ts";
import { fingerprint, shorten } from "../../../../shared/text.ts";
import { MAX_REPEATED_CALLS, MAX_TIMEOUTS_IN_A_ROW, REPEATED_CALLS_NOTED } from "../conversation-limits.ts";
import type { Operation } from "../operation.ts";

/** The members of an operation that repetitions are derived from. */
export type RepeatableCall = Pick<
  Operation,
  "name" | "input" | "invalidArguments" | "mode" | "reply" | "result" | "delivered"
>;

/** A call that had the same result again. */
interface Repetition {
  name: string;
  /** Number of model calls that got the result, the newest included. */
  times: number;
}

/** Reports whether the model call after `replies` replies is to answer without tools (REPEAT-3). */
export function isStuck(calls: readonly RepeatableCall[], replies: number): boolean {
  return repetitionsAt(calls, replies).some(({ times }) => times >= MAX_REPEATED_CALLS);
}

/** Reports whether a turn may call a tool no more (REPEAT-5). */
export function isTimingOut(calls: readonly Pick<Operation, "name" | "result">[], name: string): boolean {
  let inARow = 0;
  for (const call of calls) {
    if (call.name !== name || call.result === undefined) continue;
    inARow = call.result.error?.code === "TIMEOUT" ? inARow + 1 : 0;
    if (inARow === MAX_TIMEOUTS_IN_A_ROW) return true;
  }
  return false;
}

/** Returns the notes on repeated calls that the model call after `replies` replies gets first (REPEAT-2). */
export function repeatNotes(calls: readonly RepeatableCall[], replies: number): ContextMessage[] {
  return repetitionsAt(calls, replies).map(({ name, times }): ContextMessage => {
    const advice =
      times < MAX_REPEATED_CALLS ? "Do something else, or answer." : "Answer now with what you know.";
    const tool = JSON.stringify(shorten(name, MAX_NAME_LENGTH));
    const content = `You have made the same call of ${tool} ${times} times, and each time it had the same result. One more changes nothing. ${advice}`;
    return { role: "system", content, metadata: { ofRound: true } };
  });
}

/** Length of a tool's name in a note. */
const MAX_NAME_LENGTH = 100;

/** Returns the calls with results for the model call after `replies` replies that are repeated often enough. */
function repetitionsAt(calls: readonly RepeatableCall[], replies: number): Repetition[] {
  const newest = calls.filter((call) => seenAt(call) === replies);
  if (newest.length === 0 || replies < REPEATED_CALLS_NOTED) return [];
  const repetitions = new Map<string, Repetition>();
  for (const { name } of newest) {
    const earlier = calls.filter((call) => call.name === name && (seenAt(call) ?? replies + 1) <= replies);
    if (placesOf(earlier) < REPEATED_CALLS_NOTED) continue;
    for (const call of newest.filter((one) => one.name === name)) {
      const key = keyOf(call);
      if (repetitions.has(key)) continue;
      const times = placesOf(earlier.filter((one) => keyOf(one) === key));
      if (times >= REPEATED_CALLS_NOTED) repetitions.set(key, { name, times });
    }
  }
  return [...repetitions.values()];
}

/** Returns the number of replies before the model call that gets a call's result; `undefined` if no model call gets it. */
function seenAt({ mode, reply, result, delivered }: RepeatableCall): number | undefined {
  if (result === undefined) return undefined;
  return mode === "sync" ? reply + 1 : delivered;
}

function placesOf(calls: readonly RepeatableCall[]): number {
  return new Set(calls.map(seenAt)).size;
}

/** The keys of calls with results, which never change: each further reply of a turn compares them. */
const keys = new WeakMap<RepeatableCall, string>();

/** Returns a text that calls have in common if they and their results are equal (REPEAT-1). */
function keyOf(call: RepeatableCall): string {
  const known = keys.get(call);
  if (known !== undefined) return known;
  const { name, input, invalidArguments = null, result } = call;
  const { success = false, result: value = null, error = null } = result ?? {};
  // SAFETY: inputs and results are JSON.
  const texts = [input, invalidArguments, { success, value, error }] as unknown as Json[];
  const digests = texts.map((part) => {
    const text = canonicalJson(part);
    return `${text.length}-${fingerprint(text)}`;
  });
  const key = `${digests.join(" ")} ${name}`;
  keys.set(call, key);
  return key;
}
