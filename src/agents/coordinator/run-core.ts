/** The core of a run, as the shell of its actor calls it: decisions, store, and the effects that a state calls for. */
import { AGENT_CALL, AGENT_CANCEL } from "../../protocol/agent-call.ts";
import type { NewEnvelope } from "../../protocol/envelope.ts";
import {
  PART_ENDED,
  PART_PROGRESS,
  RUN_CANCEL,
  RUN_ENDED,
  RUN_START,
  RUN_WAITS,
} from "../../protocol/run-call.ts";
import { AGENT_INVITE, AGENT_UNINVITE } from "../../protocol/run-invitation.ts";
import { DramatisError, type ErrorData } from "../../shared/errors.ts";
import type { ActorCore, Commit, Withdrawal } from "../base/runtime/actor-core.ts";
import type { RuntimeContext } from "./context.ts";
import type { RunChange } from "./core/draft.ts";
import { dueIn, effectsAfter, effectsOf, endedBy, type RunEffect } from "./core/effects.ts";
import { changesGates } from "./core/gates.ts";
import { plan } from "./core/plan.ts";
import { type RunEnvelope, runEnvelopes } from "./core/run-envelopes.ts";
import type { RunSignal } from "./core/signals.ts";
import type { RunState } from "./core/state.ts";
import { shownStatus } from "./core/work.ts";
import type { RunDatabase } from "./store/run-database.ts";
import type { RunJournalRow } from "./store/run-journal.ts";

export interface RunCommit extends Commit<RunState>, RunChange {
  readonly state: RunState;
  readonly row: RunJournalRow;
  readonly owed: readonly RunEnvelope[];
  readonly changesStatus: boolean;
  /** A gate opens or ends. */
  readonly changesGates: boolean;
}

/** The types of envelopes that make earlier envelopes of the same or another type pointless. */
const WITHDRAWN: ReadonlyMap<string, readonly string[]> = new Map([
  [RUN_CANCEL, [RUN_START]],
  [AGENT_CANCEL, [AGENT_CALL]],
  [AGENT_UNINVITE, [AGENT_INVITE]],
  [PART_PROGRESS, [PART_PROGRESS]],
  [PART_ENDED, [PART_PROGRESS, RUN_WAITS]],
  [RUN_ENDED, [PART_PROGRESS, RUN_WAITS]],
  [RUN_WAITS, [RUN_WAITS]],
]);

export class RunCore implements ActorCore<RunState, RunSignal, RunChange | null, RunCommit, RunEffect> {
  readonly effectsOf = effectsOf;

  /** `wokeAt`: the start of this life of the actor. `note` runs in the transaction of each commit. */
  constructor(
    private readonly store: RunDatabase,
    private readonly context: Pick<RuntimeContext, "ids" | "outboxRoom">,
    private readonly wokeAt: number,
    private readonly note: (commit: RunCommit) => void,
  ) {}

  load(): RunState | null {
    return this.store.load();
  }

  /** Throws `INTERNAL_ERROR` for a defect. Planning is pure, so it would repeat. */
  plan(state: RunState, signals: readonly RunSignal[], now: number): RunChange | null {
    try {
      return plan(state, signals, now, this.context.outboxRoom);
    } catch (cause) {
      if (cause instanceof DramatisError) throw cause;
      console.error(cause);
      throw new DramatisError("INTERNAL_ERROR", "An internal error occurred.", { cause });
    }
  }

  write(before: RunState, change: RunChange | null, now: number): RunCommit | null {
    if (change === null) return null;
    const row = this.store.commit(before, change, now);
    const changesStatus = shownStatus(change.state) !== shownStatus(before);
    const isGateChanged = changesGates(before, change);
    const owed = runEnvelopes(before, change);
    const commit = { before, ...change, row, owed, changesStatus, changesGates: isGateChanged };
    this.note(commit);
    return commit;
  }

  withdrawals({ owed }: RunCommit): readonly Withdrawal[] {
    return owed.flatMap(({ to, type }) => (WITHDRAWN.get(type) ?? []).map((one) => ({ to, type: one })));
  }

  envelopes({ owed }: RunCommit): readonly NewEnvelope[] {
    return owed.map((envelope) => ({ operationId: `op_${this.context.ids.ulid()}`, ...envelope }));
  }

  dueIn(state: RunState, now: number): number | null {
    return dueIn(state, now, this.wokeAt);
  }

  effectsAfter(commits: readonly RunCommit[], state: RunState): readonly RunEffect[] {
    return effectsAfter(commits, state);
  }

  endedBy(commits: readonly RunCommit[], state: RunState): readonly string[] {
    return endedBy(commits, state);
  }

  isCurrent(state: RunState): boolean {
    return this.store.isCurrent(state);
  }

  concerns(outcome: RunSignal, effect: RunEffect): boolean {
    return outcome.type === "node.ended" && effect.kind === "task" && effect.token.id === outcome.token;
  }

  /** Fails the tokens of outcomes that can never be committed. If only their successors do not fit, the outcomes are stored without them (RUNSIGNAL-5). */
  abandon(outcomes: readonly RunSignal[], { code, message }: ErrorData): readonly RunSignal[] {
    if (code === "QUEUE_OVERFLOW") return [{ type: "run.outbox_full" }, ...outcomes];
    return outcomes.flatMap((outcome) =>
      outcome.type === "node.ended"
        ? [
            {
              type: outcome.type,
              token: outcome.token,
              attempt: outcome.attempt,
              outcome: { error: { code, message } },
            },
          ]
        : [],
    );
  }
}
