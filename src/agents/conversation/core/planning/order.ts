/**
 * Turns that overlap: which of them go on, and what each is told of the others. Pure.
 *
 * ORDER-1  `queued`: one turn at a time, in the order of their messages. A turn that waits for a person or for background
 *          work does not hold the others.
 * ORDER-2  `interrupt`: a message stops the active turns in the commit that starts its own, which sees their records.
 * ORDER-3  A cycle tells the model of the other turns that were active when it began: what their users said, and which
 *          operations run. Later calls of the cycle repeat it, later turns do not.
 * ORDER-4  Before a `once` tool starts, a turn that has not seen a newer message of the same caller gets a model call with it,
 *          once for each message.
 */
import { plainText } from "../../../../shared/content.ts";
import { defined } from "../../../../shared/defined.ts";
import { originOf } from "../caller.ts";
import type { AgentDecision, PlanInput } from "../decisions.ts";
import { MAX_NOTED_LENGTH, MAX_NOTED_TURNS } from "../limits.ts";
import type { Reorder, UserMessage } from "../signals.ts";
import { type ConversationState, openOperations, queuedTurns, type Turn } from "../state.ts";
import { stopTurn } from "./cancel.ts";

/** The decisions before and after the one that starts a turn. */
export interface Start {
  before: AgentDecision[];
  after: AgentDecision[];
}

const INTERRUPTED = { code: "CANCELLED", message: "A newer message interrupted the turn.", retriable: false };

/** Plans the first step of the turn with number `n`, and what it changes in the active ones. */
export function planStart(
  state: ConversationState,
  n: number,
  { caller, data }: UserMessage,
  input: PlanInput,
): Start {
  const others = [...state.active.values()];
  if (state.order === "interrupt") {
    const before = others.flatMap((turn) => stopTurn(turn, INTERRUPTED, { caller }, input));
    return { before, after: [{ type: "BEGIN_TURN", turn: n }] };
  }
  const message = excerpt(plainText(data.content));
  const before = others
    .filter((turn) => originOf(turn.caller) === originOf(caller))
    .map((turn): AgentDecision => ({ type: "NOTE_NEWER", turn: turn.n, message }));
  const isQueued = state.order === "queued" && others.some(holdsQueue);
  return { before, after: [isQueued ? { type: "QUEUE_TURN", turn: n } : begin(state, n)] };
}

/** Begins the first queued turn if it need not wait any longer. Call it after every change, until it begins none. */
export function planQueue(state: ConversationState): AgentDecision[] {
  const [first] = queuedTurns(state);
  const isHeld =
    state.order === "queued" && [...state.active.values()].some((turn) => !turn.queued && holdsQueue(turn));
  return first === undefined || isHeld ? [] : [begin(state, first.n)];
}

/** Changes how turns that overlap go on. */
export function planReorder(
  { order: before }: ConversationState,
  { order, caller: by }: Reorder,
): AgentDecision[] {
  return order === before ? [] : [{ type: "SET_ORDER", order, by }];
}

/** Reports whether a turn works or waits to do so, so that later ones wait for it. */
function holdsQueue(turn: Turn): boolean {
  if (turn.queued || turn.call !== null) return true;
  return openOperations(turn).some(({ target, mode }) => target === "code" && mode === "sync");
}

function begin(state: ConversationState, n: number): AgentDecision {
  return { type: "BEGIN_TURN", turn: n, ...defined({ besides: besides(state, n) }) };
}

/** Tells of the other active turns; `undefined` where there is none. */
function besides({ active }: ConversationState, n: number): string | undefined {
  const others = [...active.values()].filter((turn) => turn.n !== n && !turn.queued);
  if (others.length === 0) return undefined;
  const told = others.slice(-MAX_NOTED_TURNS);
  const left = others.length - told.length;
  return [
    "Other turns of this conversation are in progress. Each gets its own answer: do not answer it here, and do not do its work again.",
    ...told.map(describe),
    ...(left === 0 ? [] : [`And ${left} earlier ones.`]),
  ].join("\n");
}

function describe(turn: Turn): string {
  const said = `- The user said: ${JSON.stringify(excerpt(plainText(turn.input)))}.`;
  const running = openOperations(turn).map(({ name, input }) => `${name}(${JSON.stringify(input)})`);
  return running.length === 0 ? said : `${said} Running: ${excerpt(running.join(", "))}.`;
}

function excerpt(text: string): string {
  return text.length <= MAX_NOTED_LENGTH ? text : `${text.slice(0, MAX_NOTED_LENGTH).toWellFormed()}…`;
}
