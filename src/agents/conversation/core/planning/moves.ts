/**
 * The moves of a turn in a request. Results beyond the budget are shortened. Pure.
 *
 * MOVES-1  Within the budget, moves are sent whole. When a round of results exceeds the budget, the oldest results become stubs until half
 *          of the budget is used. So later rounds fit again, and the beginning of the requests rarely changes.
 * MOVES-2  The results of the newest round are never stubs. If they alone exceed the budget, each is shortened to an equal share.
 * MOVES-3  The form of a round depends only on this round and earlier rounds. So a later call, also after a crash, sends it in the same
 *          form or as stubs.
 */
import { resultIn, withResult } from "../../../../memory/session/outcome.ts";
import { shortenedContent } from "../../../../memory/session/shorten.ts";
import { estimateTokens, messageTokens, mostTokens } from "../../../../memory/session/tokens.ts";
import type { ContextMessage } from "../../../../model/messages.ts";

/** Returns the placeholder of a left-out result. */
function stubOf(content: string): string {
  return JSON.stringify(
    `(Left out: ${content.length} characters of an earlier result of this turn, to make room for newer ones.)`,
  );
}

/** Maximum tokens of a stub. */
const STUB_TOKENS = 40;
/** Minimum tokens of a shortened result. */
const MIN_RESULT_TOKENS = 128;

/** Returns the messages. Results beyond `room` tokens become stubs. */
export function fittedMoves(messages: readonly ContextMessage[], room: number): readonly ContextMessage[] {
  if (messages.reduce((sum, message) => sum + messageTokens(message, mostTokens), 0) <= room) return messages;
  const fitted = [...messages];
  const tokens = messages.map(tokensOf);
  let total = 0;
  let stubs = 0;
  for (let start = 0; start < messages.length; ) {
    const end = endOfRound(messages, start);
    for (let index = start; index < end; index++) total += tokens[index] ?? 0;
    if (total > room) {
      for (; stubs < start && total > room / 2; stubs++) total -= leaveOut(fitted, tokens, stubs);
      if (total > room) total -= shorten(fitted, tokens, { start, end }, total - room);
    }
    start = end;
  }
  return fitted;
}

/** Returns the end of the round that begins at `start`: behind the last of its results, and the notes on them. */
function endOfRound(messages: readonly ContextMessage[], start: number): number {
  let end = start + 1;
  while (isResult(messages[end]) || messages[end]?.metadata?.ofRound === true) end += 1;
  return end;
}

function isResult(message: ContextMessage | undefined): boolean {
  return message !== undefined && resultIn(message) !== null;
}

/** Replaces a result by a stub, if that is shorter. Returns the tokens that this saves. */
function leaveOut(messages: ContextMessage[], tokens: number[], index: number): number {
  const message = messages[index];
  const before = tokens[index] ?? 0;
  const result = message === undefined ? null : resultIn(message);
  if (message === undefined || result === null || before <= STUB_TOKENS) return 0;
  const stub = withResult(message, stubOf(result));
  if (stub.content.length >= message.content.length) return 0;
  messages[index] = stub;
  const after = messageTokens(stub);
  tokens[index] = after;
  return before - after;
}

/** Shortens the results of a round that is too large by `excess` tokens. Returns the tokens that this saves. */
function shorten(
  messages: ContextMessage[],
  tokens: number[],
  { start, end }: { start: number; end: number },
  excess: number,
): number {
  const results = [...messages.keys()].slice(start, end).filter((index) => isResult(messages[index]));
  const share = sizeLimit(
    results.map((index) => tokens[index] ?? 0),
    excess,
  );
  let saved = 0;
  for (const index of results) {
    const message = messages[index];
    const before = tokens[index] ?? 0;
    const result = message === undefined ? null : resultIn(message);
    if (message === undefined || result === null || before <= share) continue;
    // The share is for the message, which has more tokens than its content.
    const around = before - estimateTokens(message.content);
    const shorter = withResult(message, shortenedContent(result, share - around, estimateTokens));
    messages[index] = shorter;
    const after = messageTokens(shorter);
    tokens[index] = after;
    saved += before - after;
  }
  return saved;
}

/** Returns the maximum size that saves `excess` if larger sizes shrink to it. */
function sizeLimit(sizes: readonly number[], excess: number): number {
  let left = sizes.reduce((sum, size) => sum + size, 0) - excess;
  const ascending = sizes.toSorted((one, other) => one - other);
  for (const [index, size] of ascending.entries()) {
    const share = left / (ascending.length - index);
    if (size > share) return Math.max(MIN_RESULT_TOKENS, Math.floor(share));
    left -= size;
  }
  return Number.POSITIVE_INFINITY;
}

/** Tokens of messages, which never change: each further call of a turn repeats them. */
const known = new WeakMap<ContextMessage, number>();

/** Returns the tokens of a message, counted once. */
export function tokensOf(message: ContextMessage): number {
  const tokens = known.get(message) ?? messageTokens(message);
  known.set(message, tokens);
  return tokens;
}
