/** Checks of regenerated turns and edited messages. Pure. */
import { isDeepStrictEqual } from "node:util";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import type { MoveView } from "../../src/protocol/move-schemas.ts";
import type { ActRecord } from "./history.ts";
import { keptOf, notedCalls, replacedId } from "./replaced-turns.ts";
import { numberOf, type Scope, takenIn } from "./scope.ts";
import { TurnTimeline } from "./turn-times.ts";

export function checkReplacements(scope: Scope): void {
  const { history, outcome, conversation, fail } = scope;
  const acts = history.acts.filter((act) => act.conversation === conversation && act.key !== undefined);
  const made = outcome.turns.filter((turn) => replacedId(turn) !== undefined);
  for (const turn of made) {
    const act = acts.find((one) => one.key === keyOf(turn, scope));
    const kind = turn.regenerates === undefined ? "edit" : "regenerate";
    if (act?.does !== kind || act.turnId !== replacedId(turn))
      fail("replaced", `${turn.id} replaces ${replacedId(turn)} without a request.`);
  }
  for (const [old, turns] of Map.groupBy(made, replacedId))
    if (turns.length > 1) fail("replaced", `${old} was replaced ${turns.length} times.`);
  for (const [key, own] of Map.groupBy(acts, (act) => act.key)) {
    const turns = made.filter((turn) => keyOf(turn, scope) === key);
    if (turns.length > 1) fail("replaced", `The requests with "${key}" made ${turns.length} turns.`);
    for (const act of own) checkAnswer(act, turns[0], scope);
  }
  const taken = takenIn(outcome);
  for (const turn of made) checkTaken(turn, taken, scope);
  for (const { operationId, call } of history.toolRuns)
    if (taken.has(operationId)) fail("replaced", `${operationId} was taken over, and ran as ${call}.`);
  checkNotes(made, scope);
}

/** Returns the idempotency key of a turn. */
function keyOf({ id }: TurnView, { outcome }: Scope): string | undefined {
  return outcome.contents.get(numberOf(id))?.clientId;
}

/** An acknowledged replacement is recorded. A refused replacement is explained. The replaced turn stays as it was. */
function checkAnswer(act: ActRecord, turn: TurnView | undefined, scope: Scope): void {
  const { outcome, fail } = scope;
  const { answer, turnId, does, made, before } = act;
  const said = `${does} ${turnId} was answered ${answer?.what}`;
  if (answer?.what === "done" && (turn === undefined || turn.id !== made))
    fail("replaced", `${said} with ${made}, and ${turn?.id ?? "no turn"} is recorded.`);
  if (answer !== undefined && answer.what !== "done" && answer.what !== "CONVERSATION_CLOSED")
    checkRefusal(act, answer, said, scope);
  const old = outcome.turns.find(({ id }) => id === turnId);
  if (old === undefined) {
    fail("replaced", `${turnId} is gone.`);
    return;
  }
  if (before !== undefined && !isDeepStrictEqual(keptOf(old), keptOf(before)))
    fail(
      "replaced",
      `${turnId} was ${JSON.stringify(keptOf(before))}, and is ${JSON.stringify(keptOf(old))}.`,
    );
  const isReplaced = outcome.turns.some((one) => replacedId(one) === turnId);
  if (old.replacedBy === undefined ? isReplaced : outcome.turns.every(({ id }) => id !== old.replacedBy))
    fail("replaced", `${turnId} says that ${old.replacedBy} replaced it.`);
}

/** A final refusal: another replacement covers the turn, or the conversation was stopped. */
function checkRefusal(
  { turnId, step }: ActRecord,
  answer: NonNullable<ActRecord["answer"]>,
  said: string,
  scope: Scope,
): void {
  const { outcome, fail } = scope;
  const timeline = new TurnTimeline(scope);
  const place = outcome.turns.findIndex(({ id }) => id === turnId);
  const isCovered = timeline.turns.some(({ turn, started }) => {
    const first = outcome.turns.findIndex(({ id }) => id === replacedId(turn));
    const isBefore = timeline.stepOf(started) < answer.step;
    return isBefore && first >= 0 && first <= place && outcome.turns.indexOf(turn) > place;
  });
  const isStopped = timeline.standingsBetween(step, answer.step).some((one) => one.isStopped || one.isEnded);
  if (answer.what !== "CONFLICT" || (!isCovered && !isStopped)) fail("replaced", `${said} without a reason.`);
}

/** A regenerated turn begins with the calls of the turn that it replaces, and with their results. */
function checkTaken(turn: TurnView, taken: ReadonlySet<string>, { outcome, fail }: Scope): void {
  const own = callsOf(turn).filter(({ toolCall }) => taken.has(toolCall?.operationId ?? ""));
  const old = outcome.turns.find(({ id }) => id === replacedId(turn));
  const due = turn.regenerates === undefined || old === undefined ? [] : callsOf(old);
  if (!isDeepStrictEqual(own.map(resultOf), due.map(resultOf)))
    fail(
      "replaced",
      `${turn.id} took over ${JSON.stringify(own.map(resultOf))} of ${JSON.stringify(due.map(resultOf))}.`,
    );
}

function callsOf({ moves }: TurnView): MoveView[] {
  return moves.filter(({ toolCall }) => toolCall !== undefined);
}

function resultOf({ toolCall, toolResult }: MoveView) {
  const { success, result, error } = toolResult ?? {};
  return { name: toolCall?.name, input: toolCall?.input, success, result, error };
}

/** Calls in one note. */
const MAX_NOTED = 20;

/** The session's note of a replacement lists the calls with effects that leave. */
function checkNotes(made: readonly TurnView[], { outcome, fail }: Scope): void {
  for (const turn of made) {
    const { notes } = outcome;
    const note = notes.get(turn.id) ?? "";
    for (const { name, input } of notedCalls(turn, outcome).slice(-MAX_NOTED))
      if (!note.includes(`- ${name}(${JSON.stringify(input)}`))
        fail("replaced", `The note of ${turn.id} leaves out ${name} ${JSON.stringify(input)}.`);
  }
}
