/** Places of a conversation's turns in its journal, and of the journal's entries in the run. Pure. */

import type { JournalEntryView, TurnOrder, TurnView } from "../../src/protocol/conversation-schemas.ts";
import { defined } from "../../src/shared/defined.ts";
import { canonicalJson, isJsonObject } from "../../src/shared/json.ts";
import type { CommitRecord } from "./history.ts";
import { type Scope, tagIn, tagOfTurn, takenIn } from "./scope.ts";

/** A turn, with the numbers of its journal entries; `Infinity` for a missing entry. */
export interface TurnTimes {
  turn: TurnView;
  tag: string;
  /** The tag of its message. */
  said: string;
  started: number;
  /** The first entry of its first cycle. */
  began: number;
  ended: number;
  /** The first entries of its cycles. */
  cycles: readonly number[];
  /** The times in which it waited for background operations only: from an entry up to another. */
  waits: readonly { from: number; to: number }[];
}

export interface ToolCall {
  name: string;
  input: unknown;
  client: boolean;
  isAsync: boolean;
  /** It waits for a person. */
  awaits: boolean;
  /** The message of its error. */
  error?: string;
}

/** Entries of a call; `Infinity` for a missing entry. */
interface CallSpan {
  from: number;
  to: number;
  /** The entries of its request for approval, and of the answer. */
  asked: number;
  answered: number;
}

/** Permission to work, and the order of turns, from a journal entry on. */
export interface BaseState {
  seq: number;
  isStopped: boolean;
  isEnded: boolean;
  order: TurnOrder;
}

export class TurnTimeline {
  readonly turns: readonly TurnTimes[];
  /** Ascending. The first applies from the beginning. */
  readonly standings: readonly BaseState[];
  readonly #commits: readonly CommitRecord[];

  constructor(private readonly scope: Scope) {
    const { history, outcome, conversation } = scope;
    const firsts = (...types: string[]) => {
      const found = new Map<string, number>();
      for (const { type, turnId = "", seq } of outcome.journal)
        if (types.includes(type) && !found.has(turnId)) found.set(turnId, seq);
      return (id: string) => found.get(id) ?? Infinity;
    };
    const [started, began] = [firsts("turn.started"), firsts("message.started", "context_assembly.started")];
    const ended = firsts("turn.completed", "turn.failed");
    this.turns = outcome.turns.map((turn) => ({
      turn,
      tag: tagOfTurn(turn),
      said: tagIn(turn.input),
      started: started(turn.id),
      began: began(turn.id),
      ended: ended(turn.id),
      ...cyclesOf(outcome.journal.filter(({ turnId }) => turnId === turn.id)),
    }));
    this.#commits = history.commits.filter((commit) => commit.conversation === conversation);
    const order = history.plan.conversations[conversation]?.order ?? "parallel";
    this.standings = standingsOf(outcome.journal, { seq: 0, isStopped: false, isEnded: false, order });
  }

  /** Returns the commit of a journal entry. */
  commitOf(seq: number): CommitRecord | undefined {
    return this.#commits.findLast((commit) => commit.seq <= seq);
  }

  /** Returns the place of an entry's commit among all records; `Infinity` if it is not known. */
  stepOf(seq: number): number {
    return (seq === Infinity ? undefined : this.commitOf(seq)?.step) ?? Infinity;
  }

  /** Returns the standing behind an entry. */
  standingAt(seq: number): BaseState {
    // SAFETY: the first one holds from the beginning.
    return this.standings.findLast((standing) => standing.seq <= seq) as BaseState;
  }

  /** Returns the standings that a request may have found, or left, between two records. */
  standingsBetween(from: number, to: number): BaseState[] {
    return this.standings.filter(({ seq }, index) => {
      const next = this.standings[index + 1];
      const begins = seq === 0 ? 0 : this.stepOf(seq);
      return begins <= to && (next === undefined || this.stepOf(next.seq) >= from);
    });
  }

  /** Returns the entries of the commit that has entry `seq`. */
  rowOf(seq: number): JournalEntryView[] {
    const row = this.commitOf(seq)?.seq;
    return this.scope.outcome.journal.filter((entry) => this.commitOf(entry.seq)?.seq === row);
  }

  /** Returns the operations of a turn that have no result at an entry. */
  openAt(turn: TurnView, seq: number): ToolCall[] {
    return this.#callsOf(turn)
      .filter(({ from, to }) => from <= seq && to >= seq)
      .map(({ error: _error, asked, answered, ...call }) => ({
        ...call,
        awaits: asked <= seq && seq < answered,
      }));
  }

  /** Returns the operations of a turn that have a result before an entry. */
  settledAt(turn: TurnView, seq: number): ToolCall[] {
    return this.#callsOf(turn)
      .filter(({ to }) => to < seq)
      .map((call) => ({ ...call, awaits: false }));
  }

  /** Returns the operations of a turn, each with the entries of its start and end; `Infinity` for a missing entry. */
  #callsOf(turn: TurnView): (Omit<ToolCall, "awaits"> & CallSpan)[] {
    const spans = new Map<string, CallSpan>();
    for (const { type, operationId = "", turnId, seq } of this.scope.outcome.journal) {
      if (turnId !== turn.id) continue;
      const span = spans.get(operationId) ?? {
        from: Infinity,
        to: Infinity,
        asked: Infinity,
        answered: Infinity,
      };
      if (type === "approval.requested") spans.set(operationId, { ...span, asked: seq });
      if (type === "approval.resolved") spans.set(operationId, { ...span, answered: seq });
      if (type === "tool.requested") spans.set(operationId, { ...span, from: seq });
      if (ENDS.has(type)) spans.set(operationId, { ...span, to: seq });
    }
    // Calls that a turn took over are over from its start, and have no entries.
    for (const operationId of takenIn(this.scope.outcome))
      spans.set(operationId, { from: 0, to: 0, asked: Infinity, answered: Infinity });
    return turn.moves.flatMap(({ toolCall, toolResult }) => {
      const span = spans.get(toolCall?.operationId ?? "");
      if (toolCall === undefined || span === undefined) return [];
      const { name, input, client = false, async: isAsync = false } = toolCall;
      return [{ name, input, client, isAsync, ...span, ...defined({ error: toolResult?.error?.message }) }];
    });
  }

  /** Returns the background operations of a turn that got their results between two entries, in order, with their results. */
  resultsBetween({ moves }: TurnView, from: number, to: number): { operationId: string; text: string }[] {
    return moves.flatMap(({ toolCall, toolResult }) => {
      if (toolCall?.async !== true || toolResult === undefined) return [];
      const { operationId } = toolCall;
      const { success, result = null, error = null } = toolResult;
      const at = this.scope.outcome.journal.find(
        (entry) => entry.operationId === operationId && ENDS.has(entry.type),
      )?.seq;
      if (at === undefined || at <= from || at >= to) return [];
      return [{ operationId, text: `${operationId}: ${JSON.stringify(success ? result : error)}` }];
    });
  }
}

/** Finds the cycles and the waiting times of a turn in its entries. */
function cyclesOf(entries: readonly JournalEntryView[]): Pick<TurnTimes, "cycles" | "waits"> {
  const cycles: number[] = [];
  const waits: { from: number; to: number }[] = [];
  let isAnswered = true;
  for (const { type, seq, data } of entries) {
    if (type === "message.completed") isAnswered = !(isJsonObject(data) && data.interim === true);
    const isBackground = type === "turn.waiting" && isJsonObject(data) && data.reason === "operations";
    if (isBackground) waits.push({ from: seq, to: Infinity });
    const isBegin = type === "message.started" || type === "context_assembly.started";
    if (!isBegin || !isAnswered) continue;
    isAnswered = false;
    cycles.push(seq);
    const last = waits.at(-1);
    if (last !== undefined) last.to = Math.min(last.to, seq);
  }
  return { cycles, waits };
}

/** Entries that give an operation its result. */
export const ENDS: ReadonlySet<string> = new Set(["tool.completed", "tool.failed", "tool.cancelled"]);

function standingsOf(journal: readonly JournalEntryView[], first: BaseState): BaseState[] {
  const standings = [first];
  for (const { type, seq, data } of journal) {
    const last = standings.at(-1) ?? first;
    if (type === "conversation.cancelled") standings.push({ ...last, seq, isStopped: true });
    if (type === "conversation.resumed") standings.push({ ...last, seq, isStopped: false });
    if (type === "conversation.ended") standings.push({ ...last, seq, isEnded: true });
    if (type !== "conversation.updated" || !isJsonObject(data) || data.turns === undefined) continue;
    // SAFETY: the entry names the order.
    standings.push({ ...last, seq, order: data.turns as TurnOrder });
  }
  return standings;
}

export function namedUser({ data }: JournalEntryView): string | undefined {
  if (!isJsonObject(data) || !isJsonObject(data.by)) return undefined;
  return typeof data.by.userId === "string" ? data.by.userId : canonicalJson(data.by);
}
