/**
 * Checks what the model is given: the turns that were completed before the cycle began, in order, then the turn's own
 * message and its moves so far. Pure.
 */
import { isDeepStrictEqual } from "node:util";
import { textOf } from "../../src/client/state.ts";
import type { MessageView, MoveView, TurnView } from "../../src/protocol/views.ts";
import { saidBefore } from "./said-before.ts";
import { type Scope, tagIn } from "./scope.ts";

/** A message of a request. Of a user's message, only the first word counts: images change the rest. */
export interface Said {
  role: string;
  text: string;
  /** Names of the called tools. */
  calls: string[];
}

export function checkRequests(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const began = seqsOf(scope, "turn.started");
  const completed = seqsOf(scope, "turn.completed");
  const seeded = saidBefore(history.plan.conversations[conversation]?.history ?? 0).map(
    ({ role, content, toolCalls = [] }) =>
      said(
        role,
        content,
        toolCalls.map(({ name }) => name),
      ),
  );
  for (const turn of outcome.turns) {
    const beganAt = began.get(turn.id) ?? 0;
    const earlier = outcome.turns
      .filter(({ id }) => (completed.get(id) ?? Infinity) < beganAt)
      .sort((one, other) => (completed.get(one.id) ?? 0) - (completed.get(other.id) ?? 0));
    const before = [...seeded, ...earlier.flatMap((one) => turnSaid(one, outcome.messages))];
    const own = movesSaid(turn.moves);
    for (const call of history.modelCalls.filter(({ tag }) => tag === tagIn(turn.input))) {
      if (!isDeepStrictEqual(call.before, before)) {
        fail(
          "context",
          `${call.requestId} carries ${textsOf(call.before)} before its message, not ${textsOf(before)}.`,
        );
      }
      const replies = call.moves.filter(({ calls }) => calls.length > 0).length;
      const due = own.slice(0, replies).flat();
      if (!isDeepStrictEqual(call.moves, due)) {
        fail("context", `${call.requestId} carries the moves ${textsOf(call.moves)}, not ${textsOf(due)}.`);
      }
    }
  }
}

export function said(role: string, text: string, calls: string[] = []): Said {
  return { role, text: role === "user" ? (text.split(" ")[0] ?? "") : text, calls };
}

function seqsOf({ outcome }: Scope, type: string): Map<string | undefined, number> {
  return new Map(
    outcome.journal.filter((entry) => entry.type === type).map(({ turnId, seq }) => [turnId, seq]),
  );
}

/** Returns the messages of a completed turn. */
function turnSaid(turn: TurnView, messages: readonly MessageView[]): Said[] {
  const answer = messages.filter(({ role, turnId }) => role === "agent" && turnId === turn.id);
  return [
    said("user", textOf(turn.input)),
    ...movesSaid(turn.moves).flat(),
    ...answer.map(({ content }) => said("assistant", textOf(content))),
  ];
}

/** Returns the messages of each reply that called tools. */
function movesSaid(moves: readonly MoveView[]): Said[][] {
  const replies: Said[][] = [];
  for (const { raw, toolCall, toolResult } of moves) {
    if (toolCall === undefined) continue;
    if (raw !== undefined) replies.push([replySaid(raw)]);
    const { success = false, result = null, error = null } = toolResult ?? {};
    replies.at(-1)?.push(said("tool", JSON.stringify(success ? result : error)));
  }
  return replies;
}

function replySaid(raw: MoveView["raw"]): Said {
  // SAFETY: the view gives the model's reply in this form.
  const { text, toolCalls } = raw as { text: string; toolCalls: { name: string }[] };
  return said(
    "assistant",
    text,
    toolCalls.map(({ name }) => name),
  );
}

function textsOf(messages: readonly Said[]): string {
  return JSON.stringify(messages.map(({ role, text, calls }) => `${role}: ${text} ${calls.join(" ")}`));
}
