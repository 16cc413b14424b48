/** The conversation around a turn at one of its commits. Pure. */
import { type Amounts, addAmounts, NOTHING, subtractAmounts } from "../../../../model/spending.ts";
import { AMOUNT, amountOf, BUDGET_LIMITS, type Budget } from "../../../../protocol/budget.ts";
import type { Participant } from "../../../../protocol/participants.ts";
import { defined } from "../../../../shared/defined.ts";
import { isJsonObject } from "../../../../shared/json.ts";
import { sideCalls } from "../side-calls.ts";
import type { ConversationIdentity, ConversationState } from "../state.ts";
import type { Turn } from "../turn.ts";
import type { Divergence } from "./compare.ts";
import type { RecordedRow, Recording } from "./recording.ts";
import { dataOf } from "./scene.ts";

/** Other turns that may have been active, and the use that the commit adds for them. */
export interface World {
  others: readonly Turn[];
  extra: Amounts;
  /** The reservations of other turns leave no room for the model call that the commit refuses. */
  isRefused?: true;
  /** The calls for summaries and titles that the commit ends had ended before. They reserve nothing then. */
  hasEndedCalls?: true;
}

/** Turns that wait before the turn. A queue is shorter. */
const MAX_WAITING = 10_000;

/** Returns the worlds that the recording allows: without other turns first, and with the calls beside the turns as before the commit first. */
export function worldsOf(recording: Recording, row: RecordedRow): World[] {
  const worlds = worldsOfTurns(recording, row);
  return sideCalls(row.before).length === 0
    ? worlds
    : [...worlds, ...worlds.map((world): World => ({ ...world, hasEndedCalls: true }))];
}

function worldsOfTurns({ turn }: Recording, { before, after, entries }: RecordedRow): World[] {
  const others = [...new Set([...before.active, ...after.active])].filter((n) => n !== turn.n);
  const alone: World = { others: [], extra: NOTHING };
  const isRefused = entries.some(({ type }) => type === "budget.exceeded");
  const refused: World[] = isRefused ? [{ ...alone, isRefused }] : [];
  if (others.length === 0) return [alone, ...refused];
  const queued = entries.find(({ type }) => type === "turn.queued");
  const { position } = dataOf(queued);
  const waiting = typeof position === "number" ? Math.min(Math.max(0, position - 1), MAX_WAITING) : 0;
  // Without a call in progress, it works and needs no room in a budget.
  const working = standIn(turn, 0);
  const waits = Array.from({ length: waiting }, (_, index) => standIn(turn, -1 - index, { queued: true }));
  return [alone, { others: [working, ...waits], extra: NOTHING }, ...refused];
}

/** Returns a turn that works or waits beside the turn. */
function standIn({ stem, agentId, caller, createdAt }: Turn, n: number, members: Partial<Turn> = {}): Turn {
  return {
    ...{
      n,
      stem,
      agentId,
      caller,
      createdAt,
      input: "",
      status: "active",
      firstSeq: 1,
      snapshotSeq: 1,
      items: 2,
    },
    ...{ call: null, replies: [], operations: [], recoveries: 0, issues: {} },
    ...members,
  };
}

/** Returns the state before a commit, with the turn as the replay has made it. */
export function surroundings(
  { record, turn: recorded }: Recording,
  { before, after, entries: [first] }: RecordedRow,
  turn: Turn | undefined,
  { others, extra, hasEndedCalls }: World,
): ConversationState {
  const { active: _, budget: _before, ...given } = before;
  const { titling: _titling, ...untitled } = given;
  const { compactions, titling } = after;
  const head = hasEndedCalls ? { ...untitled, compactions, ...defined({ titling }) } : given;
  const { budget, leases, order } = after;
  const isRefused = first?.type === "budget.exceeded" || turn?.call?.leasing === true;
  const { leasing: _asking, ...call } = turn?.call ?? { leasing: true };
  const own = turn?.call?.leasing === true ? { ...turn, call: { ...turn.call, ...call } } : turn;
  const active = new Map(others.map((other) => [other.n, other]));
  if (own !== undefined) active.set(own.n, own);
  const { agentId } = recorded;
  const { spentBy } = head;
  return {
    ...head,
    order,
    spent: addAmounts(head.spent, extra),
    ...(spentBy && { spentBy: { ...spentBy, [agentId]: addAmounts(spentBy[agentId] ?? NOTHING, extra) } }),
    ...(budget && { budget }),
    ...(isRefused && leases && { leases }),
    turns: turn === undefined ? recorded.n - 1 : head.turns,
    record: present(record, agentId),
    seq: (first?.seq ?? 1) - 1,
    active,
    stored: new Map(),
  };
}

/** Returns a record in which the agent takes part, as it did then. */
function present(record: ConversationIdentity, agentId: string): ConversationIdentity {
  const participant: Participant = { type: "agent", id: agentId };
  const [first, ...others] = record.agents;
  const { deleted: _, ...primary } = first;
  const isKnown = record.participants.some(({ type, id }) => type === "agent" && id === agentId);
  return {
    ...record,
    participants: isKnown ? record.participants : [...record.participants, participant],
    agents: [first.id === agentId ? primary : first, ...others],
  };
}

/**
 * Returns the uses that other work may have added: all that the commit added beside the use of the replay, and the part of it before the
 * entry that differs.
 */
export function extrasOf(
  { after }: RecordedRow,
  spent: Amounts,
  divergence: Divergence,
): readonly [Amounts, Amounts?] {
  const all = subtractAmounts(after.spent, spent);
  const [expected, actual] = [divergence.expected, divergence.actual].map((entry) => leftIn(entry?.data));
  if (expected === undefined || actual === undefined) return [all];
  const part = BUDGET_LIMITS.filter((limit) => expected[limit] !== undefined).map((limit) => {
    const [less, more] = [expected[limit] ?? 0, actual[limit] ?? 0];
    return [AMOUNT[limit], amountOf(more, limit) - amountOf(less, limit)] as const;
  });
  const isPart = part.every(([amount, value]) => value >= 0 && value <= all[amount]);
  return isPart ? [all, { ...all, ...Object.fromEntries(part) }] : [all];
}

/** Returns the rest of the conversation's budget in the data of an entry. */
function leftIn(data: unknown): Budget | undefined {
  const left = isJsonObject(data) ? data.budgetLeft : undefined;
  // SAFETY: planning writes the rest of a budget.
  return isJsonObject(left) ? (left as Budget) : undefined;
}
