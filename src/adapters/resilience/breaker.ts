/**
 * A circuit breaker: pauses calls to a failing model. Pure. Times are milliseconds.
 *
 * BREAKER-1  The breaker opens after a number of failures within the window, without a success between them.
 * BREAKER-2  An open breaker refuses all calls, at most for the cool-down, even if the clock jumps.
 * BREAKER-3  After the cool-down it admits one probe at a time. A success closes the breaker, a failure opens it again. A probe without a
 *            result is given up after another cool-down.
 * BREAKER-4  Results of attempts that were admitted before the breaker opened do not change an open breaker.
 */

export interface BreakerSettings {
  /** Number of failures that open the breaker. */
  failures: number;
  windowMs: number;
  coolDownMs: number;
}

export type BreakerState =
  /** `failures`: the times of failures since the last success, ascending. */
  | { phase: "closed"; failures: readonly number[] }
  | { phase: "open"; until: number }
  | { phase: "half-open"; probeUntil: number };

export const CLOSED: BreakerState = { phase: "closed", failures: [] };

export type Admission =
  | { admitted: true; isProbe: boolean; state: BreakerState }
  | { admitted: false; retryAfterMs: number; state: BreakerState };

/** The health of the model after one attempt. `unknown` if the attempt is inconclusive, such as a cancelled attempt. */
export type Verdict = "alive" | "failed" | "unknown";

/** Decides whether an attempt may start now. */
export function admitCall(state: BreakerState, { coolDownMs }: BreakerSettings, now: number): Admission {
  if (state.phase === "closed") return { admitted: true, isProbe: false, state };
  const end = state.phase === "open" ? state.until : state.probeUntil;
  const until = Math.min(end, now + coolDownMs);
  if (now < until) {
    const kept: BreakerState =
      state.phase === "open" ? { phase: "open", until } : { ...state, probeUntil: until };
    return { admitted: false, retryAfterMs: until - now, state: kept };
  }
  return { admitted: true, isProbe: true, state: { phase: "half-open", probeUntil: now + coolDownMs } };
}

/** Returns the breaker after the end of an attempt that it admitted. */
export function record(
  state: BreakerState,
  { isProbe, verdict }: { isProbe: boolean; verdict: Verdict },
  settings: BreakerSettings,
  now: number,
): BreakerState {
  switch (state.phase) {
    case "closed":
      return recordClosed(state.failures, verdict, settings, now);
    case "open":
      return state;
    case "half-open":
      if (!isProbe) return state;
      if (verdict === "alive") return CLOSED;
      // After an inconclusive probe, the next probe may start at once.
      return { phase: "open", until: verdict === "failed" ? now + settings.coolDownMs : now };
    default:
      return state satisfies never;
  }
}

function recordClosed(
  before: readonly number[],
  verdict: Verdict,
  { failures: limit, windowMs, coolDownMs }: BreakerSettings,
  now: number,
): BreakerState {
  if (verdict === "alive") return CLOSED;
  if (verdict === "unknown") return { phase: "closed", failures: before };
  const failures = [...before.filter((at) => at > now - windowMs), now];
  return failures.length >= limit
    ? { phase: "open", until: now + coolDownMs }
    : { phase: "closed", failures };
}
