/**
 * A conversation: takes messages and results of clients' tools, and connects the shell with the conversation's core, store
 * and effects. Runs unchanged in a Durable Object and in Node.
 */
import type { SessionEvent } from "../../memory/session/session-event.ts";
import type { Budget } from "../../protocol/budget.ts";
import type { TurnOrder } from "../../protocol/conversation-schemas.ts";
import { messageId, turnId } from "../../protocol/ids.ts";
import type { TurnPrompt } from "../../protocol/prompt.ts";
import type { StartedTurn } from "../../protocol/signals.ts";
import { defined } from "../../shared/defined.ts";
import { conflict, notFound } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";
import { ToolStateStore } from "../base/calls/tool-state-store.ts";
import { ActorShell } from "../base/runtime/shell.ts";
import { StoredClock } from "../base/runtime/stored-clock.ts";
import { Acceptance } from "./acceptance.ts";
import type { RuntimeContext, StoredConversation } from "./context.ts";
import {
  type ConversationCommit,
  ConversationCore,
  type ConversationShell,
  type ConversationUnit,
} from "./conversation-core.ts";
import type { CallInProgress } from "./core/decisions.ts";
import { modelKey } from "./core/effects.ts";
import { ephemeralFrame, framesOf } from "./core/frames.ts";
import { extractionOf } from "./core/hooks.ts";
import { checkOpen } from "./core/life.ts";
import { callCount, turnAsOf } from "./core/planning/as-of.ts";
import { promptOf } from "./core/planning/prompt.ts";
import { requestProfile } from "./core/planning/request.ts";
import { inlineBytes } from "./core/planning/results.ts";
import { type RunningSideCall, sideCallKey } from "./core/side-calls.ts";
import type { EffectSignal, UserMessage } from "./core/signals.ts";
import type { ConversationIdentity, ConversationState } from "./core/state.ts";
import type { CallingTurn, Turn } from "./core/turn.ts";
import { operationsOf } from "./core/turn-operations.ts";
import { unsavedFacts, unsavedSideCall } from "./core/unsaved.ts";
import { DeltaBuffer } from "./effects/delta-buffer.ts";
import { type EffectContext, EffectRunner } from "./effects/effect-runner.ts";
import type { HookRuns } from "./effects/hook-runs.ts";
import { bringsAgent } from "./effects/join.ts";
import { withoutMedia } from "./effects/media.ts";
import { requestBody } from "./effects/model-attempt.ts";
import type { CompactedTurn } from "./effects/model-call.ts";
import { nextRequestTokens } from "./effects/next-request.ts";
import { Reports } from "./effects/reports.ts";
import { SessionWindows } from "./effects/session-windows.ts";
import { ConversationChanges } from "./inbound/changes.ts";
import { Handles } from "./inbound/handles.ts";
import { TurnEnds } from "./inbound/turn-ends.ts";
import { rawReply } from "./reads/views.ts";
import { LargeResults } from "./results/large-results.ts";
import { OperationResults } from "./results/operation-results.ts";
import { InboundSignalQueue } from "./signal-queue.ts";
import { ConversationDatabase } from "./store/conversation-database.ts";

/** The initial settings of a conversation, without its record. */
export interface Beginning {
  history?: readonly SessionEvent[];
  /** `parallel` when absent. */
  order?: TurnOrder;
  orchestration?: false;
  budget?: Budget;
}

export class ConversationRuntime implements StoredConversation {
  private readonly context: RuntimeContext & { clock: StoredClock };
  readonly store: ConversationDatabase;
  readonly deltas: DeltaBuffer;
  /** The ends of turns, for callers that wait for them. */
  readonly ends: TurnEnds;
  readonly #shell: ConversationShell;
  readonly #effects: EffectRunner;
  readonly #windows: SessionWindows;
  readonly #toolState: ToolStateStore;
  readonly #acceptance: Acceptance;
  readonly #reports: Reports;
  readonly large: LargeResults;
  /** The results of tools that come from outside this actor. */
  readonly results: OperationResults;
  readonly changes: ConversationChanges;
  readonly queue: InboundSignalQueue;

  constructor(given: RuntimeContext) {
    const { database, keyValue } = given;
    const store = new ConversationDatabase(database, keyValue);
    const clock = new StoredClock(given.clock, keyValue, () => store.newestAt);
    const context = { ...given, clock, store, runtime: this };
    this.store = store;
    this.context = context;
    this.deltas = new DeltaBuffer(context);
    this.ends = new TurnEnds(clock);
    this.#windows = new SessionWindows(store, () => this.state.record);
    this.#effects = new EffectRunner(this.#effectContext());
    this.#toolState = new ToolStateStore(keyValue);
    this.#reports = new Reports(context, (n) => this.#compactedTurn(n));
    this.#acceptance = new Acceptance(context);
    this.#shell = new ActorShell(this.#core(), {
      ...context,
      publish: (commit) => this.#publish(commit),
      effects: this.#effects,
    });
    const connected = { ...context, shell: this.#shell, acceptance: this.#acceptance };
    this.queue = new InboundSignalQueue(connected);
    this.large = new LargeResults(context, this);
    this.results = new OperationResults({
      ...{ ...connected, handles: new Handles(keyValue), large: this.large },
      onProgress: (...report) => this.#publishProgress(...report),
    });
    this.changes = new ConversationChanges(connected);
  }

  /** The state, loaded on first use. Throws `NOT_FOUND` before the conversation is created, `UNAVAILABLE` if a newer release stored it. */
  get state(): ConversationState {
    const { state } = this.#shell;
    if (state === null) throw notFound("This conversation does not exist. Create it first.");
    return state;
  }

  get exists(): boolean {
    return this.#shell.state !== null;
  }

  /** The runs of hooks that this life of the actor waits for. */
  get hookRuns(): HookRuns {
    return this.#effects.hookRuns;
  }

  /** Forgets a conversation after the commit of its deletion. */
  forget = () => this.#shell.forget();

  get busy(): boolean {
    return (this.#shell.state?.active.size ?? 0) > 0;
  }

  /** In how many milliseconds `reconcile` must be called again; `null` if it need not be. */
  get dueIn(): number | null {
    return this.#shell.dueIn;
  }

  /** Resolves when the wake-up of the active turns is armed. */
  whenArmed(): Promise<void> {
    return this.#shell.whenArmed();
  }

  /** The facts that tools keep. Throws as `state` does. */
  get toolState(): ToolStateStore {
    void this.state;
    return this.#toolState;
  }

  /**
   * Creates the conversation, with a history from elsewhere. Announces it if lists contain it. Resolves when the wake-ups of
   * the announcement are armed.
   */
  create(record: ConversationIdentity, beginning: Beginning = {}): Promise<void> {
    return this.#shell.commitBy((unit) => this.stageCreation(unit, record, beginning));
  }

  /** Creates the conversation as `create` does, in a unit of work. */
  stageCreation(
    unit: ConversationUnit,
    record: ConversationIdentity,
    { history, ...settings }: Beginning = {},
  ): void {
    unit.create(() => ({
      state: this.store.create(record, history, settings),
      sent: [
        ...(record.listed === false ? [] : this.context.listing.announce(record)),
        ...(this.context.retained?.arm(record) ?? []),
      ],
    }));
  }

  /** Resumes what a crash interrupted. Call it once, when the actor wakes. */
  async wake(): Promise<void> {
    if (this.dueIn === null) return;
    const { clock } = this.context;
    clock.recall();
    await this.#shell.resume([{ type: "conversation.cmd.recover", wasSetBack: clock.isBehind }]);
  }

  /**
   * Commits kept outcomes, fails operations after their deadline, and begins turns of queued messages. Then starts all missing effects of
   * the state.
   */
  reconcile(): void {
    if (!this.exists) return;
    this.#shell.retryUnsaved();
    this.#shell.tick([{ type: "conversation.cmd.expire" }]);
    this.queue.drain();
    this.#shell.startAll();
  }

  /**
   * Begins a unit of work, for the transaction of a mailbox handler. Stage messages by `stageMessage`, other signals by the
   * unit itself, and release the unit after the commit.
   */
  begin(): ConversationUnit {
    return this.#shell.begin();
  }

  /** Reports whether the message has started a turn before. */
  isKnown(signal: UserMessage): boolean {
    void this.state;
    return this.#acceptance.isKnown(signal);
  }

  /** As `check`, before the conversation exists. Throws `CONFLICT` if it was deleted. */
  async checkFirst(signal?: UserMessage): Promise<void> {
    this.store.checkNotDeleted();
    if (signal !== undefined) await this.#acceptance.check(signal);
  }

  /** Checks a message's content and schemas. Throws if they are invalid. Throws `CONVERSATION_CLOSED` after the end. */
  async check(signal: UserMessage): Promise<void> {
    checkOpen(this.state);
    await this.#acceptance.check(signal);
  }

  /**
   * Accepts a user's message. The same key and body answer the same turn; another body is `IDEMPOTENCY_CONFLICT`.
   * Resolves when the turn is durable and its wake-up armed.
   */
  async accept(signal: UserMessage): Promise<StartedTurn> {
    const checked = this.#acceptance.check(signal);
    // Without attachments, the commit happens in the caller's own step, without an interruption.
    if (checked !== undefined) await checked;
    let accepted: StartedTurn | undefined;
    const committed = this.#shell.commitBy((unit) => {
      accepted = this.#acceptance.stage(unit, signal);
    });
    await committed;
    if (accepted === undefined) throw new Error("A committed message was accepted.");
    return accepted;
  }

  /**
   * Accepts a user's message in a unit of work, as `accept` does. Throws `UNSUPPORTED` for attachments: their check is
   * asynchronous.
   */
  stageMessage(unit: ConversationUnit, signal: UserMessage): StartedTurn {
    this.#acceptance.checkNow(signal);
    return this.#acceptance.stage(unit, signal);
  }

  #finishedTurn(n: number): Turn {
    const turn = this.store.turn(n);
    if (turn === null) throw new Error(`Turn ${n} has a hook or a call for a title, but its row is missing.`);
    return turn;
  }

  /**
   * Returns the request of a turn's model call with this number, by default of the newest call. Throws `CONFLICT` before the turn has
   * called a model, and `NOT_FOUND` for another number.
   */
  prompt(turn: Turn, number?: number): TurnPrompt {
    const { record } = this.state;
    const calls = callCount(turn);
    if (calls === 0) throw conflict("This turn has not called a model yet.");
    const asOf = turnAsOf(record, turn, number ?? calls);
    if (asOf === undefined) {
      const message = `This turn has no model call ${number}. Its calls have the numbers 1 to ${calls}.`;
      throw notFound(message);
    }
    const { request, parts, missing } = promptOf(record, asOf, {
      history: () => this.#windows.messagesAsOf(this.state, asOf.turn),
      shownTurns: () => this.#shownTurns(asOf.turn),
    });
    const profile = requestProfile(record, asOf.turn);
    const adapter = this.context.adapters(profile.provider);
    const { body } = requestBody(adapter, profile, request, withoutMedia(request.base.messages));
    const { reply } = asOf;
    return {
      ...{ turnId: turnId(turn), agentId: turn.agentId, call: asOf.number, calls },
      ...{ provider: profile.provider, model: profile.modelId },
      ...{ tokens: parts.reduce((sum, part) => sum + part.tokens, 0), parts, missing, request: body },
      ...(reply && { reply: rawReply(reply, operationsOf(turn, turn.replies.indexOf(reply))) }),
    };
  }

  readonly turn = (n: number): Turn | null => this.state.active.get(n) ?? this.store.turn(n);

  #shownTurns({ shownTurns = [] }: Turn): Turn[] {
    return shownTurns.flatMap((n) => this.store.turn(n) ?? []);
  }

  #compactedTurn(n: number): CompactedTurn {
    const found = this.store.turns.get(n);
    if (found === null) throw new Error(`Turn ${n} began a side call, but its row is missing.`);
    return found.turn;
  }

  #publish({ before, state, transition, row, changesWaiting }: ConversationCommit): void {
    const { record } = state;
    this.#acceptance.count(state.turns - before.turns);
    this.context.onCommit();
    for (const { sessionId } of transition.notes) this.#windows.forget(sessionId);
    if (transition.erased !== undefined) for (const { id } of record.agents) this.#windows.forget(id);
    for (const turn of transition.touched.values()) {
      if (before.active.get(turn.n)?.snapshotSeq !== turn.snapshotSeq) this.#windows.begin(turn, state);
      if (turn.status === "active") continue;
      this.#windows.end(turn);
      this.ends.note(turn);
    }
    const isSideCall = before.compactions !== state.compactions || before.titling !== state.titling;
    if (isSideCall && before.usage !== state.usage) this.context.onUsage();
    const rewritten = transition.erased?.flatMap(({ turns }) => turns) ?? [];
    const turnOf = (n: number) => transition.touched.get(n) ?? rewritten.find((turn) => turn.n === n);
    // An extraction ends after its turn. Do not read the turn here, because the read may fail.
    const extracted = (n: number) => {
      const run = extractionOf(before, n);
      return run && { n, stem: run.stem };
    };
    this.deltas.publish(framesOf(row, 0, record, turnOf, (n) => turnOf(n) ?? extracted(n)));
    this.#reports.report(record, before.active, transition);
    if (changesWaiting) void this.context.approvals.publish();
  }

  #core(): ConversationCore {
    const inProgress = (turn: CallingTurn): CallInProgress => ({
      shown: this.deltas.textOf(messageId(turn, turn.call.item)),
      ...defined({ facts: this.#effects.factsOf(modelKey(turn)) ?? unsavedFacts(this.#shell.unsaved, turn) }),
    });
    const requestTokens = (state: ConversationState, turn: CallingTurn, ended?: readonly Turn[]) =>
      nextRequestTokens(state, turn, {
        history: () => this.#windows.messagesAsOf(state, turn, ended),
        shownTurns: () => this.#shownTurns(turn),
      });
    const sideCallInProgress = (running: RunningSideCall) =>
      this.#effects.factsOf(sideCallKey(running)) ?? unsavedSideCall(this.#shell.unsaved, running);
    const sizesAfter = (turn: Turn, high: number) => this.#windows.sizesAfter(turn, high);
    const drainFrom = (state: ConversationState) => this.queue.drainFrom(state);
    const planning = { drainFrom, inProgress, sideCallInProgress, sizesAfter, requestTokens };
    const context = { ...this.context, ...planning, toolState: this.#toolState };
    return new ConversationCore(this.store, context, this.context.clock.now());
  }

  #effectContext(): EffectContext {
    return {
      ...this.context,
      record: () => this.state.record,
      history: (turn) => this.#windows.messagesFor(turn),
      shownTurns: (turn) => this.#shownTurns(turn),
      compacted: (call) => {
        const turn = this.#compactedTurn(call.turn);
        return { turn, history: () => this.#windows.messagesBefore(call, turn) };
      },
      reportSideCall: (outcome) => this.#shell.report([outcome]),
      finished: (n) => this.#finishedTurn(n),
      preview: (signal) => this.#preview(signal),
      inlineBytes: (turn) => inlineBytes(this.state, turn),
      startMore: () => this.#shell.startAll(),
      // A late outcome is noted by name, as if its executor had lost this actor. It is noted once, even if it arrives again.
      report: (...outcomes) => {
        if (outcomes.some(bringsAgent) && this.state.record.listed !== false)
          void this.context.listing.note();
        const areLate = outcomes.some((outcome) => this.results.isLate(outcome));
        return this.#shell.report(outcomes) && !areLate;
      },
      onText: (turn, item, text) => this.deltas.append(turnId(turn), messageId(turn, item), text),
      onProgress: (...report) => this.#publishProgress(...report),
    };
  }

  #publishProgress(turn: Turn, operationId: string, progress: Json): void {
    const ids = { turnId: turnId(turn), operationId };
    this.context.publish([ephemeralFrame("tool.progress", { progress }, ids, this.context.clock.now())]);
  }

  #preview(signal: EffectSignal): Turn | undefined {
    try {
      return this.#shell.preview([signal]).touched.get(signal.turn);
    } catch {
      // The report of the signal fails in the same way, and handles the failure.
      return undefined;
    }
  }
}
