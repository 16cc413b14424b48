/** Checks of every run, on its history. Pure. */
import { isDeepStrictEqual } from "node:util";
import { NOTICES } from "../../src/agents/conversation/core/conversation-limits.ts";
import type { LiveConversation, TurnItem } from "../../src/client/state.ts";
import type { TurnView } from "../../src/protocol/conversation-schemas.ts";
import { isJsonObject } from "../../src/shared/json.ts";
import { checkApprovals } from "./check-approvals.ts";
import { checkAttempts, checkRecoveries, isExhausted } from "./check-attempts.ts";
import { checkBudget } from "./check-budget.ts";
import {
  attemptsUsed,
  checkCalls,
  checkContext,
  checkFallbacks,
  checkModelCalls,
  checkUsage,
  localFailures,
} from "./check-calls.ts";
import { checkClientTools } from "./check-client-tools.ts";
import { checkFork } from "./check-forks.ts";
import { checkHooks } from "./check-hooks.ts";
import { checkMessages, checkOrder } from "./check-messages.ts";
import { checkOverlap } from "./check-order.ts";
import { checkQueued } from "./check-queue.ts";
import { checkRecords } from "./check-records.ts";
import { checkReplacements } from "./check-replacements.ts";
import { checkRequests } from "./check-requests.ts";
import { checkStops } from "./check-stops.ts";
import { checkTitles } from "./check-titles.ts";
import { checkTools } from "./check-tools.ts";
import type { ConnectionRecord, History, ModelCallRecord, Outcome } from "./history.ts";
import { OUTPUT_TRIES } from "./model-script.ts";
import { planOf } from "./planned-forks.ts";
import { checkPrompts } from "./prompts.ts";
import type { Property, Violation } from "./properties.ts";
import { messageTag, type Scope, sentIn, tagIn, tagOfTurn } from "./scope.ts";
import { ENDS } from "./turn-times.ts";

export function check(history: History): Violation[] {
  const found: Violation[] = [];
  const fail = (property: Property, detail: string) => found.push({ property, detail });
  for (const incident of history.incidents) fail("incident", incident);
  history.outcomes.forEach((outcome, conversation) => {
    const scope: Scope = { history, outcome, conversation, fail };
    checkMessages(scope);
    checkOrder(scope);
    checkReplacements(scope);
    checkQueued(scope);
    checkEnds(scope);
    checkJournal(scope);
    checkTools(scope);
    checkClientTools(scope);
    checkApprovals(scope);
    checkModelCalls(scope);
    checkFallbacks(scope);
    checkAttempts(scope);
    checkRecoveries(scope);
    checkCalls(scope);
    checkUsage(scope);
    checkRecords(scope);
    checkBudget(scope);
    checkContext(scope);
    checkRequests(scope);
    checkHooks(scope);
    checkTitles(scope);
    checkStops(scope);
    checkOverlap(scope);
    checkData(scope);
    checkTexts(scope);
    checkViews(scope);
    checkReplays(scope);
    checkPrompts(scope);
  });
  for (const fork of history.forks) {
    const scope = checkFork(fork, history, fail);
    if (scope !== undefined) checkFuture(scope, fork.outcome);
  }
  for (const turn of history.stuck) fail("waits", `${turn} waits for nothing.`);
  checkIds(history, fail);
  for (const connection of history.connections) checkFrames(connection, history, fail);
  return found;
}

/** Checks the own turns of a fork. */
function checkFuture(scope: Scope, whole: Outcome | undefined): void {
  checkUsage(scope);
  checkBudget(scope);
  if (whole === undefined) return;
  const fork = { ...scope, outcome: whole };
  checkJournal(fork);
  checkRecords(fork);
  checkViews(fork);
  // An erased turn has no words to compare or to replay.
  if (whole.journal.some(({ type }) => type === "entry.erased")) return;
  checkMessages(scope);
  checkEnds(scope);
  checkReplays(fork);
}

function checkIds({ outcomes }: History, fail: Scope["fail"]): void {
  const ids = outcomes.flatMap(({ turns }) => turns.map(({ id }) => id));
  if (new Set(ids).size !== ids.length)
    fail("ids", `Turns of two conversations share an id: ${ids.join(", ")}.`);
}

function checkReplays({ outcome, fail }: Scope): void {
  for (const { turnId, replay, problem } of outcome.replays) {
    if (problem !== undefined) fail("replays", `${turnId} has no replay: ${problem}`);
    if (replay?.divergence) fail("replays", `${turnId} diverges: ${JSON.stringify(replay.divergence)}`);
  }
}

function checkEnds(scope: Scope): void {
  const { history, outcome, fail } = scope;
  const active = [...outcome.stored.active.keys()];
  if (active.length > 0) fail("ends", `Turns ${active.join(", ")} never end.`);
  const answered = new Set(sentIn(scope).flatMap(({ tag, isAnswered }) => (isAnswered ? [tag] : [])));
  const unarmed = history.fired.some(({ port, kind }) => port === "window.open" && kind === "error");
  for (const tag of outcome.abandoned) {
    // If the wake-up failed to arm, no sender got an acknowledgement, although a watcher may have seen the message.
    if (!unarmed || answered.has(tag)) fail("ends", `The turn of ${tag} waits until somebody calls.`);
  }
  for (const [session, { call }] of Object.entries(outcome.stored.compactions))
    if (call !== undefined) fail("ends", `The session of ${session} is compacted for ever.`);
  if (outcome.stored.titling !== undefined) fail("ends", "A title is written for ever.");
  if (outcome.timers > 0) fail("ends", `${outcome.timers} timers are left.`);
  if (outcome.armed && active.length === 0) fail("ends", "The wake-up is still armed.");
  if (outcome.memory !== undefined && !isDeepStrictEqual(outcome.memory, outcome.stored)) {
    fail(
      "memory",
      `Memory ${JSON.stringify(plain(outcome.memory))}, database ${JSON.stringify(plain(outcome.stored))}.`,
    );
  }
  for (const turn of outcome.turns) {
    if (turn.latencyMs !== null && turn.latencyMs < 0) fail("ends", `${turn.id} took ${turn.latencyMs} ms.`);
    if (turn.status !== "failed") continue;
    const tag = tagOfTurn(turn);
    const calls = history.modelCalls.filter((call) => call.tag === tag);
    const { code = "", message = "" } = turn.error ?? {};
    if (!isExplained(turn.id, code, calls, scope)) fail("failure", `${tag} failed: ${code} ${message}`);
  }
}

function isExplained(turnId: string, code: string, calls: readonly ModelCallRecord[], scope: Scope): boolean {
  const { history, conversation } = scope;
  const models = 1 + (planOf(history.plan, conversation)?.fallbacks ?? 0);
  switch (code) {
    case "CONTEXT_ASSEMBLY_FAILED":
      return planOf(history.plan, conversation)?.hooks?.assembly !== undefined;
    case "MODEL_FAILED":
      return (
        calls.some(({ failure }) => failure === "bad request") ||
        attemptsUsed(calls) + localFailures(scope) >= 3 * models
      );
    case "OUTPUT_INVALID": {
      const unfit = calls.filter(({ failure, unfit }) => failure === undefined && unfit !== undefined);
      return (
        unfit.length >= OUTPUT_TRIES || unfit.some(({ unfit }) => unfit === "cut off" || unfit === "refused")
      );
    }
    // `checkStops` explains it.
    case "CANCELLED":
      return true;
    // `checkBudget` explains it.
    case "BUDGET_EXCEEDED":
      return planOf(history.plan, conversation)?.budget !== undefined;
    case "RECOVERY_EXHAUSTED":
      return isExhausted(turnId, scope);
    default:
      return false;
  }
}

function checkData({ history, outcome, fail }: Scope): void {
  for (const turn of outcome.turns) {
    const { id, status, output } = turn;
    const asked = history.modelCalls.filter(({ tag }) => tag === tagOfTurn(turn));
    const wanted = asked.some(({ wantsData }) => wantsData);
    if (asked.some(({ wantsData }) => wantsData !== wanted))
      fail("data", `${id} does not always ask for data.`);
    const given = asked.filter(({ unfit, failure }) => unfit === undefined && failure === undefined);
    if (wanted && status === "completed" && !given.some(({ text }) => text === JSON.stringify(output)))
      fail("data", `${id} gives ${JSON.stringify(output)}.`);
    if ((!wanted || status !== "completed") && output !== undefined)
      fail("data", `${id} has data without a request for it.`);
  }
}

function plain({ active, ...rest }: Outcome["stored"]) {
  const { record: _record, ...numbers } = rest;
  return { ...numbers, active: [...active] };
}

function checkJournal({ outcome, fail }: Scope): void {
  const bounds = new Map<string, { started: number; ended: number }>();
  outcome.journal.forEach((entry, index) => {
    if (entry.seq !== index + 1) fail("journal", `Entry ${index + 1} has number ${entry.seq}.`);
    const { turnId } = entry;
    if (turnId === undefined) return;
    const bound = bounds.get(turnId) ?? { started: 0, ended: 0 };
    bounds.set(turnId, bound);
    if (
      bound.ended > 0 &&
      !/^(?:turn\.finalized|tool\.late|entry\.erased|memory_extraction\..*)$/.test(entry.type)
    )
      fail("journal", `${entry.type} ${entry.seq} after the end.`);
    if (entry.type === "turn.started") bound.started += 1;
    else if (bound.started !== 1)
      fail("journal", `${entry.type} ${entry.seq} in a turn started ${bound.started} times.`);
    if (entry.type === "turn.completed" || entry.type === "turn.failed") bound.ended += 1;
  });
  for (const [turn, { ended }] of bounds) if (ended !== 1) fail("ends", `${turn} ended ${ended} times.`);
  for (const turn of outcome.turns) {
    if (turn.status === "active") continue;
    const own = outcome.journal.filter((entry) => entry.turnId === turn.id);
    if (!isDeepStrictEqual(outcome.journals.get(turn.id), own.toReversed()))
      fail("journal", `The entries of ${turn.id} differ from the entries that name it.`);
    const count = (type: string) => own.filter((entry) => entry.type === type).length;
    if (turn.status === "completed" && count("message.started") !== count("message.completed"))
      fail("journal", `Messages of ${turn.id} do not pair.`);
    for (const [id, calls] of Map.groupBy(own, ({ operationId }) => operationId)) {
      const ends = calls.filter(({ type }) => ENDS.has(type));
      const isHook =
        id === turn.contextAssemblyRunId || calls.some(({ type }) => !/^(?:tool|approval)\./.test(type));
      if (id !== undefined && !isHook && ends.length !== 1)
        fail("journal", `${id} has ${ends.length} results.`);
      if (ends.some(({ type }) => type === "tool.cancelled") && turn.status !== "failed")
        fail("journal", `${id} is cancelled, and its turn is not.`);
    }
  }
}

function checkTexts({ history, outcome, fail }: Scope): void {
  for (const turn of outcome.turns) {
    // A regenerated turn has the earlier words of the turn that it replaces.
    const calls = history.modelCalls.filter(({ tag }) => messageTag(tag) === tagIn(turn.input));
    const said = calls.filter(({ failure }) => failure === undefined);
    const texts = new Set<string>([...said.map(({ text }) => text), ...Object.values(NOTICES)]);
    const own = outcome.messages.filter(({ role, turnId }) => role === "agent" && turnId === turn.id);
    const [stopped, answers] = [
      own.filter((message) => message.stopped),
      own.filter((message) => !message.stopped),
    ];
    const cycles = turn.moves.filter(({ toolCall, raw }) => toolCall === undefined && !isStopped(raw)).length;
    if (answers.length !== cycles || (turn.status === "completed" && cycles === 0))
      fail("text", `${turn.id} has ${answers.length} answers.`);
    if (stopped.length > (turn.status === "failed" ? 1 : 0))
      fail("text", `${turn.id} has ${stopped.length} stopped messages.`);
    for (const { content } of stopped) {
      if (!calls.some(({ text }) => text.startsWith(String(content))))
        fail("text", `${turn.id} was stopped in ${JSON.stringify(content)}.`);
      texts.add(String(content));
    }
    for (const { content } of answers) {
      if (!texts.has(String(content))) fail("text", `${turn.id} says ${JSON.stringify(content)}.`);
    }
    for (const { reasoning } of turn.moves) {
      if (reasoning !== undefined && !texts.has(reasoning))
        fail("text", `${turn.id} thinks ${JSON.stringify(reasoning)}.`);
    }
  }
}

function isStopped(raw: TurnView["moves"][number]["raw"]): boolean {
  return isJsonObject(raw) && raw.stopped === true;
}

function checkFrames(connection: ConnectionRecord, history: History, fail: Scope["fail"]): void {
  const where = `Connection of client ${connection.client} from ${connection.from}`;
  const report = (detail: string) => fail("frames", `${where}: ${detail}`);
  checkNumbers(connection, history.outcomes[connection.conversation]?.journal ?? [], report);
  checkDeltas(connection, history, report);
}

/** Journal entries without a frame. */
const SILENT = new Set([
  "conversation.started",
  "conversation.queue.received",
  "conversation.queue.drained",
  "turn.resumed",
  "tool.interrupted",
  "tool.late",
]);
/** Entries of hooks, which no client sees; the report of failures is a frame. */
const OF_HOOKS = /^(?:context_assembly|memory_extraction)\.(?!failing)/;
/** Entries of side calls, which no client sees. */
const OF_SIDE_CALLS = /^(?:context\.compact|conversation\.title)/;

/** A connection must receive every durable frame after its start once, in order. */
function checkNumbers(
  { from, frames }: ConnectionRecord,
  journal: Outcome["journal"],
  report: (detail: string) => void,
): void {
  // A rejection of a connection has no number and may precede all other frames.
  const told = frames.filter(({ type, seq }) => type !== "error" || seq !== undefined);
  const [first, ...rest] = told;
  const begins = from ?? first?.seq;
  if (first === undefined || begins === undefined) return;
  if ((first.type === "snapshot") !== (from === null)) report(`begins with ${first.type}.`);
  const got = (from === null ? rest : told).flatMap(({ seq }) => seq ?? []);
  const last = got.at(-1) ?? begins;
  const due = journal.filter(
    ({ seq, type }) =>
      seq > begins && seq <= last && !SILENT.has(type) && !OF_HOOKS.test(type) && !OF_SIDE_CALLS.test(type),
  );
  const wanted = due.map(({ seq }) => seq);
  if (!isDeepStrictEqual(got, wanted)) report(`numbers ${got.join(" ")} came, of ${wanted.join(" ")}.`);
}

/** The text of a message must grow without gaps or repetitions, and equal the model's text. */
function checkDeltas(
  { conversation, frames }: ConnectionRecord,
  { modelCalls }: History,
  report: (detail: string) => void,
): void {
  const said = modelCalls.filter((call) => call.conversation === conversation).map(({ text }) => text);
  const texts = new Map<string, string>();
  for (const frame of frames) {
    const id = frame.messageId ?? "";
    const shown = texts.get(id) ?? "";
    switch (frame.type) {
      case "snapshot":
        for (const { messageId, text } of frame.data.partials) texts.set(messageId, text);
        break;
      case "message.reset":
        texts.delete(id);
        break;
      case "message.completed":
        if (!frame.data.content.startsWith(shown)) report(`${id} was shown as ${JSON.stringify(shown)}.`);
        texts.delete(id);
        break;
      case "message.delta": {
        const { offset, text: piece } = frame.data;
        if (offset !== shown.length) report(`${id} continues at ${offset} after ${shown.length}.`);
        const text = shown + piece;
        if (!said.some((one) => one.startsWith(text))) report(`${id} shows ${JSON.stringify(text)}.`);
        texts.set(id, text);
        break;
      }
      default:
    }
  }
}

/** Number of messages in a snapshot. A client that begins with a snapshot may lack older messages. */
const SNAPSHOT_MESSAGES = 50;

function checkViews({ outcome, fail }: Scope): void {
  const messages = outcome.messages.map(({ id, role, content }) => ({ id, role, content }));
  const compare = (name: string, state: LiveConversation) => {
    const shown = state.messages.map(({ id, role, content }) => ({ id, role, content }));
    const last = messages.slice(-Math.max(shown.length, SNAPSHOT_MESSAGES));
    const older = new Set(
      outcome.messages.slice(0, messages.length - last.length).map(({ turnId }) => turnId),
    );
    const turnsOf = (one: LiveConversation) => turnsShown(one).filter(({ id }) => !older.has(id));
    if (!isDeepStrictEqual(shown, last)) {
      fail("views", `${name} shows ${JSON.stringify(shown)}, recorded is ${JSON.stringify(messages)}.`);
    }
    if (!isDeepStrictEqual(turnsOf(state), turnsOf(outcome.replayed))) {
      fail(
        "views",
        `${name} shows turns ${JSON.stringify(turnsShown(state))}, a replay ${JSON.stringify(turnsShown(outcome.replayed))}.`,
      );
    }
  };
  compare("A replay", outcome.replayed);
  compare("A snapshot", outcome.snapshot);
  for (const { client, resumed } of outcome.clients)
    if (resumed !== undefined) compare(`Client ${client}`, resumed);
  const recorded = outcome.turns.map(({ id, status }) => ({ id, status }));
  const replayed = outcome.replayed.turns.map(({ id, status }) => ({ id, status }));
  if (!isDeepStrictEqual(replayed, recorded))
    fail("views", "The turns of a replay differ from the turns of the store.");
}

/** All clients must show the same turns, whether they received them live or joined later. */
function turnsShown({ turns }: LiveConversation) {
  return turns.map(({ id, status, items, error }) => ({
    id,
    status,
    error: error?.code,
    items: items.flatMap(shownItem).sort(),
  }));
}

function shownItem(item: TurnItem): string[] {
  switch (item.type) {
    case "message":
      return [`message ${item.id}`];
    case "tool":
      return [
        `tool ${item.id} ${item.operation.state} ${JSON.stringify(item.operation.result ?? item.operation.error)}`,
      ];
    case "partial":
      return [`partial ${item.id}`];
    case "thought":
      return [];
    default:
      return item satisfies never;
  }
}
