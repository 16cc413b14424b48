/** Differences between recorded entries and the entries that planning makes today. Pure. */
import type { ToolResult } from "../../../../protocol/executor-api.ts";
import type { TurnReplay } from "../../../../protocol/recording.ts";
import { defined } from "../../../../shared/defined.ts";
import { canonicalJson, type Json } from "../../../../shared/json.ts";
import type { JournalEntry } from "../journal-entry.ts";
import type { Operation } from "../operation.ts";
import type { Turn } from "../turn.ts";
import type { RecordedEntry, RecordedRow } from "./recording.ts";
import { operationAt } from "./scene.ts";

export type Divergence = NonNullable<TurnReplay["divergence"]>;

type Shown = Divergence["expected"];

/** Returns an entry without its place. */
function shown(entry: Pick<JournalEntry, "type" | "item" | "data"> | undefined): Shown {
  if (entry === undefined) return null;
  const { type, item, data } = entry;
  return { type, ...defined({ item, data: data === undefined ? undefined : plain(data) }) };
}

/** Returns a value as JSON has it: without absent members. */
function plain<Value>(value: Value): Json {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}

function isEqual(one: unknown, other: unknown): boolean {
  return canonicalJson(plain(one)) === canonicalJson(plain(other));
}

/** Returns the first difference of two lists; `null` if the shorter list begins the longer list. */
export function differenceIn(
  expected: readonly RecordedEntry[],
  actual: readonly JournalEntry[],
): Divergence | null {
  for (const [index, entry] of expected.entries()) {
    const made = actual[index];
    if (made === undefined) return null;
    if (!isEqual(shown(entry), shown(made)))
      return { seq: entry.seq, expected: shown(entry), actual: shown(made) };
  }
  return null;
}

/** Returns the difference of whole lists. */
export function differenceOf(
  expected: readonly RecordedEntry[],
  actual: readonly JournalEntry[],
): Divergence | null {
  const found = differenceIn(expected, actual);
  if (found !== null || expected.length === actual.length) return found;
  const missing = expected[actual.length];
  const seq = missing?.seq ?? expected.at(-1)?.seq ?? 1;
  return { seq, expected: shown(missing), actual: shown(actual[expected.length]) };
}

/** Returns the first difference of the ended turn: a result of a call, or the error. */
export function differenceAtEnd(
  rows: readonly RecordedRow[],
  recorded: Turn,
  made: Turn | undefined,
): Divergence | null {
  const entries = rows.flatMap((row) => row.entries);
  const ends = entries.filter(({ type }) => /^tool\.(?:completed|failed|cancelled)$/.test(type));
  for (const entry of ends) {
    const [before, now] = [operationAt(recorded, entry.item), operationAt(made, entry.item)];
    if (isEqual(resultOf(before), resultOf(now))) continue;
    return {
      seq: entry.seq,
      expected: withData(entry, resultOf(before)),
      actual: withData(entry, resultOf(now)),
    };
  }
  const last = entries.at(-1);
  const end = entries.find(({ type }) => type === "turn.completed" || type === "turn.failed") ?? last;
  if (end === undefined || isEqual(endOf(recorded), endOf(made))) return null;
  return { seq: end.seq, expected: withData(end, endOf(recorded)), actual: withData(end, endOf(made)) };
}

function withData({ type, item }: RecordedEntry, data: unknown): Shown {
  return shown({ type, ...defined({ item }), data: plain(data) });
}

function resultOf(operation: Operation | undefined) {
  if (operation === undefined) return undefined;
  const { status, attempt, result } = operation;
  return { status, attempt, ...outcomeOf(result) };
}

function outcomeOf(result: ToolResult | undefined) {
  if (result === undefined) return {};
  return result.success ? { result: result.result ?? null } : { error: result.error };
}

function endOf(turn: Turn | undefined) {
  if (turn === undefined) return undefined;
  const { status, error, silent, issues } = turn;
  // A later extraction adds its failure.
  const { memoryExtractionFailed: _, ...own } = issues;
  return { status, error, silent, issues: own, messages: turn.replies.length };
}
