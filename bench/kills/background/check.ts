/**
 * Checks the history of the scenario `background`. Pure.
 *
 * KILL-12 Each accepted message of a batch has exactly one turn, also if it was sent again. The turns of a batch begin
 *         in its order, and no message waits at the end.
 * KILL-13 Each background operation has one outcome, and the last answer of its turn had it. It fails only if it
 *         acts once and a kill made its outcome unknown, or if so many kills interrupted its turn that the turn failed.
 * KILL-14 A tool that acts once is called once per operation. A result that its handle accepted is the outcome.
 */
import { MAX_RECOVERIES } from "../../../src/agents/conversation/core/conversation-limits.ts";
import type { JournalEntryView } from "../../../src/protocol/conversation-schemas.ts";
import type { Violation } from "../check/records.ts";
import type { BackgroundFinal, BackgroundHistory, SentBatch } from "./history.ts";
import { scriptIn } from "./script.ts";

/** Returns the violations of a history. */
export function checkBackground(history: BackgroundHistory): Violation[] {
  return history.finals.flatMap((final) => {
    const name = (rule: string, whats: string[]) =>
      whats.map((what): Violation => ({ rule, conversation: final.conversation, what }));
    return [
      ...name("KILL-12", messagesAmiss(final, history)),
      ...name("KILL-13", operationsAmiss(final, history)),
      ...name("KILL-14", callsAmiss(final, history)),
    ];
  });
}

function messagesAmiss(final: BackgroundFinal, { batches }: BackgroundHistory): string[] {
  const keys = final.messages.map(({ content }) => scriptIn(content)?.key ?? "");
  const own = batches.filter(({ conversation }) => conversation === final.conversation);
  const known = new Set(own.flatMap(({ scripts }) => scripts.map(({ key }) => key)));
  return [
    ...own.flatMap((batch) => batchAmiss(batch, keys)),
    ...keys.filter((key) => !known.has(key)).map((key) => `${key} was never sent`),
    ...endsAmiss(final),
  ];
}

function batchAmiss({ scripts, accepted }: SentBatch, keys: readonly string[]): string[] {
  const faults = accepted.flatMap((key) => {
    const turns = keys.filter((one) => one === key).length;
    return turns === 1 ? [] : [`${key} was accepted and has ${turns} turns`];
  });
  const places = scripts.map(({ key }) => keys.indexOf(key)).filter((place) => place >= 0);
  const isOrdered = places.every((place, index) => index === 0 || place > (places[index - 1] ?? 0));
  return isOrdered
    ? faults
    : [...faults, `the batch of ${scripts[0]?.key} began in the order ${places.join(" ")}`];
}

function endsAmiss({ journal }: BackgroundFinal): string[] {
  const ofTurns = Map.groupBy(journal, ({ turnId = "" }) => turnId);
  ofTurns.delete("");
  return [...ofTurns].flatMap(([turnId, entries]) => {
    const count = (type: string) => entries.filter((entry) => entry.type === type).length;
    const [completed, failed] = [count("turn.completed"), count("turn.failed")];
    if (completed + failed !== 1) return [`${turnId} ended ${completed + failed} times`];
    return failed === 0 || isGivenUp(entries)
      ? []
      : [`${turnId} failed after ${count("turn.resumed")} crashes`];
  });
}

/** Reports whether the entries of a turn have so many crashes that the turn may fail. */
function isGivenUp(entries: readonly JournalEntryView[]): boolean {
  return entries.filter(({ type }) => type === "turn.resumed").length >= MAX_RECOVERIES;
}

/** Returns the missing events. A run must cause each of them, or it proves too little. */
export function missingIn({ batches, given, finals }: BackgroundHistory): string[] {
  const journal = finals.flatMap((final) => final.journal);
  const has = (type: string) => journal.some((entry) => entry.type === type);
  return [
    ...(batches.some(({ tries }) => tries > 1) ? [] : ["No batch was sent again."]),
    ...(has("conversation.queue.received") ? [] : ["No message waited in the queue."]),
    ...(given.some(({ status }) => status === 200) ? [] : ["No result came later."]),
    ...(has("turn.resumed") ? [] : ["No kill interrupted a turn."]),
  ];
}

interface Operation {
  id: string;
  turnId: string;
  tool: string;
  ends: JournalEntryView[];
  /** A kill interrupted its run. */
  isInterrupted: boolean;
}

/** Returns the operations of a conversation. The journal does not name tools, but a turn's operations are in the order of its script's calls. */
function operationsOf({ journal, messages }: BackgroundFinal): Operation[] {
  const requested = journal.filter(({ type }) => type === "tool.requested");
  const scripts = new Map(messages.map(({ turnId, content }) => [turnId, scriptIn(content)]));
  return requested.map(({ operationId: id = "", turnId = "" }) => {
    const index = requested
      .filter((entry) => entry.turnId === turnId)
      .findIndex((entry) => entry.operationId === id);
    const ends = journal.filter(
      (entry) => entry.operationId === id && /^tool\.(?:completed|failed|cancelled)$/.test(entry.type),
    );
    const isInterrupted = journal.some(
      (entry) => entry.operationId === id && entry.type === "tool.interrupted",
    );
    return { id, turnId, tool: scripts.get(turnId)?.calls[index] ?? "unknown", ends, isInterrupted };
  });
}

function operationsAmiss(final: BackgroundFinal, { answers }: BackgroundHistory): string[] {
  const operations = operationsOf(final);
  const completed = new Set(
    final.journal.flatMap(({ type, turnId }) => (type === "turn.completed" ? [turnId] : [])),
  );
  const entriesOf = (turnId: string) => final.journal.filter((entry) => entry.turnId === turnId);
  const outcomes = operations.flatMap(({ id, turnId, tool, ends, isInterrupted }) => {
    if (ends.length !== 1) return [`${tool} ${id} has ${ends.length} outcomes`];
    const [end] = ends;
    if (end?.type === "tool.completed") return [];
    const isUnknown = tool !== "research" && isInterrupted;
    if (isUnknown || (end?.type === "tool.cancelled" && isGivenUp(entriesOf(turnId)))) return [];
    return [`${tool} ${id} ends with ${end?.type}: ${JSON.stringify(end?.data)}`];
  });
  const answered = final.messages.flatMap(({ content, turnId }) => {
    const script = scriptIn(content);
    if (script === null || !completed.has(turnId)) return [];
    const own = operations.filter((one) => one.turnId === turnId).map(({ id }) => id);
    const knows = answers.findLast(({ key }) => key === script.key)?.knows ?? [];
    const unknown = own.filter((id) => !knows.includes(id));
    return [
      ...(own.length === script.calls.length ? [] : [`${script.key} has ${own.length} operations`]),
      ...(unknown.length === 0 ? [] : [`${script.key} was answered without ${unknown.join(", ")}`]),
    ];
  });
  return [...outcomes, ...answered];
}

function callsAmiss(final: BackgroundFinal, { hits, given }: BackgroundHistory): string[] {
  return operationsOf(final).flatMap(({ id, tool, ends: [end] }) => {
    const calls = hits.filter(({ operationId }) => operationId === id).length;
    const isTaken = given.some(({ operationId, status }) => operationId === id && status === 200);
    const hasSucceeded = end?.type === "tool.completed";
    return [
      ...(tool !== "research" && calls > 1 ? [`${tool} ${id} was called ${calls} times`] : []),
      ...(hasSucceeded && calls === 0 ? [`${tool} ${id} succeeded without a call`] : []),
      ...(tool === "pay" && isTaken !== hasSucceeded
        ? [`the result of ${id} was ${isTaken ? "" : "not "}taken, and its outcome is ${end?.type}`]
        : []),
    ];
  });
}
