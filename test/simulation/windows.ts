/** The part of a session that a model may see, and the rules for it. Pure. */
import { isDeepStrictEqual } from "node:util";
import { historyBudget } from "../../src/agents/conversation/core/planning/context.ts";
import { chainOf } from "../../src/agents/conversation/core/state.ts";
import type { PromptMessage } from "./check-requests.ts";
import { ASK, toolsOf } from "./client-tool.ts";
import type { Outcome, SessionRecord } from "./history.ts";
import { tagOf } from "./model-script.ts";
import { AGENT, messageTag, type Scope } from "./scope.ts";

type Shown = SessionRecord & { message: PromptMessage };

/** The events of a session as of a place in it: the summary in force, and the turns that it does not cover. */
export interface Window {
  summary: Shown[];
  turns: Shown[][];
}

/** Returns the window of the first `count` messages of a session. `gone`: the numbers of replaced turns. */
export function windowOf(
  { session }: Pick<Outcome, "session">,
  count: number,
  gone: ReadonlySet<number> = new Set(),
): Window {
  const shown = session.filter((event): event is Shown => event.message !== undefined).slice(0, count);
  return windowIn(shown.filter(({ turn }) => turn === undefined || !gone.has(turn)));
}

function windowIn(events: readonly Shown[]): Window {
  const newest = events.findLast(({ covers }) => covers !== undefined);
  const turns: Shown[][] = [];
  for (const event of events) {
    if (event.covers !== undefined || event.seq < (newest?.covers ?? 0)) continue;
    if (event.beginsTurn || turns.length === 0) turns.push([]);
    turns.at(-1)?.push(event);
  }
  return { summary: newest === undefined ? [] : [newest], turns };
}

/** Returns a window without the turns from an event on. */
export function upTo({ summary, turns }: Window, seq: number): Window {
  return windowIn([...summary, ...turns.flat()].filter((event) => event.seq < seq));
}

/** Returns the tokens that instructions and tools leave for the history of a turn. */
export function budgetOf({ history, outcome, conversation }: Scope, tag: string): number {
  if (history.plan.conversations[conversation]?.memory === undefined) return Number.POSITIVE_INFINITY;
  const chain = chainOf(outcome.stored.record, AGENT);
  return Math.max(
    1,
    historyBudget(
      chain,
      bringsTool(history.plan.conversations[conversation], conversation, tag) ? [ASK] : [],
    ),
  );
}

function bringsTool(
  plan: Scope["history"]["plan"]["conversations"][number] | undefined,
  conversation: number,
  tag: string,
): boolean {
  return (plan?.clients ?? []).some(({ messages }, client) =>
    messages.some(
      (message, index) => tagOf(conversation, client, index) === messageTag(tag) && toolsOf(message).tools,
    ),
  );
}

/** Describes the difference between messages and the window of a budget, if there is any. */
export function amissIn(
  actual: readonly PromptMessage[],
  { summary, turns }: Window,
  budget: number,
): string | undefined {
  const messagesOf = (events: readonly Shown[]) => events.map((event) => event.message).filter(isSent);
  const front = actual.slice(0, summary.length);
  const left = actual.slice(summary.length);
  if (!isDeepStrictEqual(front, messagesOf(summary))) return "it does not begin with the summary in force";
  const room = budget - tokensOf(summary);
  if (tokensOf(turns.flat()) <= room)
    return isDeepStrictEqual(left, messagesOf(turns.flat()))
      ? undefined
      : "it is not the whole history, which fits";
  const newest = turns.at(-1) ?? [];
  if (tokensOf(newest) > room) return mismatchInTurn(left, newest, room);
  const start = turns.findIndex((_, index) => isDeepStrictEqual(left, messagesOf(turns.slice(index).flat())));
  if (start === -1) return "it does not end with whole turns";
  const tokens = tokensOf(turns.slice(start).flat());
  if (tokens > room) return `it has ${tokens} tokens, and ${room} fit`;
  const more = tokens + tokensOf(turns[start - 1] ?? []);
  return tokens < room / 2 && more <= room ? `it has only ${tokens} tokens, and ${room} fit` : undefined;
}

/** Reports whether a provider is sent a message: an empty reply is left out. */
function isSent({ role, text, calls }: PromptMessage): boolean {
  return role !== "assistant" || calls.length > 0 || text.trim() !== "";
}

/** If a turn alone is too long, the model sees its message and its last moves. */
function mismatchInTurn(actual: readonly PromptMessage[], [first, ...all]: readonly Shown[], room: number) {
  const moves = all.filter(({ message }) => isSent(message));
  const [head, ...left] = actual;
  if (!isDeepStrictEqual(head, first?.message)) return "it does not begin with the newest message";
  const start = moves.findIndex((_, index) =>
    isDeepStrictEqual(
      left,
      moves.slice(index).map(({ message }) => message),
    ),
  );
  if (start === -1 && left.length > 0) return "it does not end with the newest moves";
  if (moves[start]?.message.role === "tool") return "it has a result without its call";
  const kept = start === -1 ? [] : moves.slice(start);
  const units = kept.filter(({ message }) => message.role !== "tool").length;
  const tokens = (first?.tokens ?? 0) + tokensOf(kept);
  return tokens > room && units > 1 ? `it has ${tokens} tokens, and ${room} fit` : undefined;
}

export function tokensOf(events: readonly SessionRecord[]): number {
  return events.reduce((sum, { tokens }) => sum + tokens, 0);
}
