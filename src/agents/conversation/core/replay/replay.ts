/**
 * Replay of an ended turn: today's planning on its recorded results. No model, no tool and no other actor is called. Pure.
 *
 * REPLAY-1  A replay calls nothing and writes nothing. The recorded results, times and ids are its only inputs.
 * REPLAY-2  The first difference between the entries of the recording and the entries that planning makes today is the divergence.
 * REPLAY-3  After the last entry, the results that planning made itself must equal the recorded results: refusals, timeouts, and the
 *           error of the turn.
 * REPLAY-4  Turns that ran at the same time do not matter. Their effect on the turn is an input, as the results are.
 */
import type { Gate } from "../../../../policy/gate.ts";
import type { TurnRecording, TurnReplay } from "../../../../protocol/recording.ts";
import { DramatisError } from "../../../../shared/errors.ts";
import type { CallInProgress, PlanInput } from "../decisions.ts";
import { reservationOf } from "../planning/budget.ts";
import { reduce } from "../reducer.ts";
import type { ConversationState } from "../state.ts";
import { beginCycles, settle, step } from "../step.ts";
import { beginTransition, type Transition } from "../transition.ts";
import type { CallingTurn, Turn } from "../turn.ts";
import { noteWork } from "../work-times.ts";
import { causesOf } from "./causes.ts";
import { differenceAtEnd, differenceIn, differenceOf } from "./compare.ts";
import { countOf } from "./model-causes.ts";
import { type RecordedRow, type Recording, readRecording } from "./recording.ts";
import { type Cause, dataOf, NOTHING_NEW, type Scene } from "./scene.ts";
import { extrasOf, surroundings, type World, worldsOf } from "./worlds.ts";

type Unchecked = NonNullable<TurnReplay["partial"]>[number];

interface Played {
  turn: Turn | undefined;
  transition: Transition;
  divergence: TurnReplay["divergence"];
  unchecked: readonly Unchecked[];
}

/** Replays a recorded turn with today's planning. */
export function replayRecording(given: TurnRecording): TurnReplay {
  const recording = readRecording(given);
  const unchecked: Unchecked[] = [];
  let turn: Turn | undefined;
  for (const row of recording.rows) {
    const played = replayRow(recording, row, turn);
    unchecked.push(...played.unchecked);
    if (played.divergence !== null) return replayed(played.divergence, unchecked);
    turn = played.turn;
  }
  return replayed(differenceAtEnd(recording.rows, recording.turn, turn), unchecked);
}

function replayed(divergence: TurnReplay["divergence"], unchecked: readonly Unchecked[]): TurnReplay {
  return { calls: 0, divergence, ...(unchecked.length === 0 ? {} : { partial: [...unchecked] }) };
}

/** Replays a commit in the first world without a divergence; in the first world if all diverge. */
function replayRow(recording: Recording, row: RecordedRow, turn: Turn | undefined): Played {
  let first: Played | undefined;
  for (const world of worldsOf(recording, row)) {
    const played = inWorld(recording, row, turn, world);
    if (played.divergence === null) return played;
    first ??= played;
  }
  if (first === undefined) throw new Error("A commit has at least one world.");
  return first;
}

function inWorld(recording: Recording, row: RecordedRow, turn: Turn | undefined, world: World): Played {
  const played = play(recording, row, turn, world);
  if (played.divergence === null) return played;
  // Other work in the same commit may have used a part of the budget: all of it before the entry, or a part.
  const { seq } = played.divergence;
  const [all, part] = extrasOf(row, played.transition.state.spent, played.divergence);
  const withAll = play(recording, row, turn, { ...world, extra: all });
  if (withAll.divergence === null || part === undefined)
    return withAll.divergence === null ? withAll : played;
  const withPart = play(recording, row, turn, { ...world, extra: part });
  const reason = "The use of other turns before the entry is not stored.";
  return withPart.divergence === null
    ? { ...withPart, unchecked: [...withPart.unchecked, { seq, reason }] }
    : played;
}

/** Applies the causes of a commit's entries, until each recorded entry is made or planning makes another entry. */
function play(recording: Recording, row: RecordedRow, turn: Turn | undefined, world: World): Played {
  const { n } = recording.turn;
  const { entries: expected } = row;
  const state = surroundings(recording, row, turn, world);
  const unchecked: Unchecked[] = [];
  const input = planInput(recording, row, world);
  const entriesOf = ({ entries }: Transition) => entries.filter((entry) => entry.turn === n);
  const ended = (transition: Transition, divergence: TurnReplay["divergence"]): Played => {
    const { state: next, touched } = transition;
    return { turn: touched.get(n) ?? next.active.get(n), transition, divergence, unchecked };
  };
  let transition = beginTransition(state);
  for (let made = 0; made < expected.length; ) {
    const rest = expected.slice(made);
    const scene: Scene = { recording, rest, turn: transition.state.active.get(n), now: row.at };
    // The first cause that makes the most of the recorded entries.
    let chosen: { cause: Cause; next: Transition; count: number } | undefined;
    for (const cause of causesOf(scene)) {
      const next = stepOf(transition, cause, input);
      if (next === null || entriesOf(next).length === made) continue;
      const entries = entriesOf(next);
      const isEqual = entries.length <= expected.length && differenceIn(expected, entries) === null;
      const count = isEqual ? entries.length : 0;
      if (chosen === undefined || count > chosen.count) chosen = { cause, next, count };
      if (count === expected.length) break;
    }
    if (chosen === undefined) break;
    transition = chosen.next;
    const found = differenceIn(expected, entriesOf(transition));
    if (found !== null) return ended(transition, found);
    if ("unchecked" in chosen.cause && chosen.cause.unchecked !== undefined)
      unchecked.push({ seq: rest[0]?.seq ?? 1, reason: chosen.cause.unchecked });
    made = entriesOf(transition).length;
  }
  const last = { ...input, stem: "" };
  transition = noteWork(state, settle(beginCycles(transition, last), last), row.at);
  return ended(transition, differenceOf(expected, entriesOf(transition)));
}

/** Applies a cause; `null` if planning refuses it. */
function stepOf(transition: Transition, cause: Cause, input: PlanInput): Transition | null {
  try {
    if ("signal" in cause) return step(transition, cause.signal, input);
    const decided = reduce(transition, cause.decide(transition.state, input), input.now);
    return step(decided, NOTHING_NEW, input);
  } catch (error) {
    if (error instanceof DramatisError) return null;
    throw error;
  }
}

/** Returns the input of planning at a commit. The sizes of requests are not stored: each request fits, unless an entry has its size. */
function planInput(
  { turn, options }: Recording,
  { at: now, entries }: RecordedRow,
  { isRefused }: World,
): PlanInput {
  const { limit, needed } = dataOf(entries.find(({ type }) => type === "budget.exceeded"));
  const tokens = limit === "tokens" ? Number(needed) : 0;
  const sizeOf = (state: ConversationState, calling: CallingTurn) => {
    const { outputTokens } = reservationOf(state, calling, { requestTokens: () => 0 });
    return Math.max(0, tokens - outputTokens);
  };
  return {
    ...options,
    ...{ now, stem: turn.stem, newStem: () => turn.stem, gate: recordedGate(turn) },
    inProgress: (calling) => progressOf(turn, calling, now),
    requestTokens: isRefused ? () => -Number.MAX_SAFE_INTEGER : sizeOf,
  };
}

function recordedGate({ operations }: Turn): Gate {
  const verdicts = new Map(
    operations.map(({ toolCallId, name, policy, result }) => {
      const isDenied = result?.error?.message === `The tool "${name}" is not allowed here.`;
      return [toolCallId, policy ?? (isDenied ? "deny" : "allow")] as const;
    }),
  );
  return (_tool, _input, { toolCallId }) => verdicts.get(toolCallId) ?? "allow";
}

/** Returns the progress of the call in which the turn was stopped: the text that was shown, and the count of its attempt. */
function progressOf(recorded: Turn, turn: CallingTurn, now: number): CallInProgress {
  const { item } = turn.call;
  const shown = recorded.replies.find((reply) => reply.item === item && reply.stopped)?.text ?? "";
  const isCounted = recorded.calls?.some((call) => call.item === item && call.category === "canceled");
  if (!isCounted) return { shown };
  return { shown, facts: { startedAt: now, finishedAt: now, ...countOf(recorded, turn) } };
}
