/** The ends of turns without an answer, from the entries that they caused. Pure. */
import type { BudgetExcess } from "../../../../protocol/budget.ts";
import type { Caller } from "../../../../protocol/caller-schemas.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import { exceeded } from "../planning/budget.ts";
import { failTurn, stopTurn } from "../planning/cancel.ts";
import { planRecovery } from "../planning/recovery.ts";
import type { Signal } from "../signals.ts";
import { emptyReply, failed } from "./model-causes.ts";
import type { RecordedEntry } from "./recording.ts";
import { type Cause, type Decide, dataOf, NOTHING_NEW, type Scene } from "./scene.ts";

const INTERNAL: ErrorData = {
  code: "INTERNAL_ERROR",
  message: "An internal error occurred.",
  retriable: false,
};

/** Returns the possible causes of the failure of the turn. */
export function turnFailed(scene: Scene): Cause[] {
  const { turn, recording, rest } = scene;
  const end = rest.find(({ type }) => type === "turn.failed");
  if (turn === undefined || end === undefined) return [];
  const { n } = turn;
  const { error = INTERNAL } = recording.turn;
  const { by, reason: given } = dataOf(end);
  const reason = typeof given === "string" ? { reason: given } : {};
  const outside: Cause = { signal: { type: "conversation.cmd.abandon", turn: n, error } };
  if (by !== undefined) {
    // SAFETY: the entry names the caller who stopped the turn.
    const caller = by as unknown as Caller;
    // A person can send the message again. Other stops are the end of the conversation, or a newer message.
    return error.retriable
      ? [{ signal: { type: "conversation.cancel", turn: n, caller, ...reason } }]
      : [
          {
            decide: (state, input) =>
              stopTurn(state.active.get(n) ?? turn, error, { caller, ...reason }, input),
          },
        ];
  }
  const causes = causesOfError(scene, error);
  // Planning makes these errors itself, so it must make them today.
  return causes.length > 0 ? causes : [outside];
}

function causesOfError(scene: Scene, error: ErrorData): Cause[] {
  const { turn } = scene;
  switch (error.code) {
    case "MODEL_FAILED":
      return failed(scene, error.message);
    case "RECOVERY_EXHAUSTED":
      return recovery(scene);
    case "BUDGET_EXCEEDED":
      return [{ signal: NOTHING_NEW }];
    case "TIMEOUT":
      return [{ signal: { type: "conversation.cmd.expire" } }];
    case "EXECUTION_FAILED":
      return emptyReply(scene, "stop");
    case "OUTPUT_INVALID":
      return [unfit(turn?.n ?? 0, error)];
    default:
      return [];
  }
}

function unfit(turn: number, error: ErrorData): Cause {
  return {
    decide: () => [{ type: "FAIL_TURN", turn, error }],
    unchecked: "The text of the answer that did not fit the schema is not stored.",
  };
}

export function budgetExceeded({ turn }: Scene, entry: RecordedEntry): Cause[] {
  if (turn === undefined) return [];
  const { n } = turn;
  // SAFETY: the entry has the limit that the call exceeded.
  const excess = dataOf(entry) as unknown as BudgetExcess;
  const decide: Decide = (state, input) => [
    { type: "EXCEED_BUDGET", turn: n, excess },
    failTurn(state.active.get(n) ?? turn, exceeded(state, excess), input),
  ];
  const unchecked = "The reservations of other turns and the size of the request are not stored.";
  return [{ signal: NOTHING_NEW }, { decide, unchecked }];
}

/** Returns the causes of a turn that begins again after a crash. The clock may have been set back, or the model call may have waited. */
export function recovery({ turn }: Scene): Cause[] {
  const type = "conversation.cmd.recover";
  const signals: Signal[] = [{ type }, { type, wasSetBack: true }];
  const causes = signals.map((signal): Cause => ({ signal }));
  if (turn === undefined || turn.call === null) return causes;
  const { n, call } = turn;
  const decide: Decide = (state, input) => {
    const waiting = {
      ...(state.active.get(n) ?? turn),
      call: { ...call, notBefore: Number.POSITIVE_INFINITY },
    };
    return planRecovery({ ...state, active: new Map([[n, waiting]]) }, input.now, input);
  };
  return [...causes, { decide, unchecked: "The pause that a provider requested is not stored." }];
}
