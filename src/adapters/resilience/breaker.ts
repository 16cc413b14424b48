/**
 * A circuit breaker: what fails again and again is left alone for a while. Pure; times are milliseconds.
 *
 * BREAKER-1  It opens when so many attempts have failed within the window, and none succeeded between them.
 * BREAKER-2  While it is open nothing is admitted, for no longer than the cool-down, whatever the clock does.
 * BREAKER-3  After that one attempt at a time is a probe: its success closes the breaker, its failure opens it again. A
 *            probe that is not heard of for another cool-down is given up.
 * BREAKER-4  What was admitted before it opened changes nothing once it is open.
 */

export interface BreakerSettings {
  /** Failures that open it. */
  failures: number;
  windowMs: number;
  coolDownMs: number;
}

export type BreakerState =
  /** `failures`: when attempts failed since the last success, the newest last. */
  | { phase: "closed"; failures: readonly number[] }
  | { phase: "open"; until: number }
  | { phase: "half-open"; probeUntil: number };

export const CLOSED: BreakerState = { phase: "closed", failures: [] };

export type Admission =
  | { admitted: true; isProbe: boolean; state: BreakerState }
  | { admitted: false; retryAfterMs: number; state: BreakerState };

/** What an attempt showed of the other side; `unknown` where it showed nothing, such as a cancelled one. */
export type Verdict = "alive" | "failed" | "unknown";

/** Whether an attempt may be made now. */
export function askBreaker(state: BreakerState, { coolDownMs }: BreakerSettings, now: number): Admission {
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

/** The breaker after an attempt that it had admitted. */
export function judge(
  state: BreakerState,
  { isProbe, verdict }: { isProbe: boolean; verdict: Verdict },
  settings: BreakerSettings,
  now: number,
): BreakerState {
  switch (state.phase) {
    case "closed":
      return judgeClosed(state.failures, verdict, settings, now);
    case "open":
      return state;
    case "half-open":
      if (!isProbe) return state;
      if (verdict === "alive") return CLOSED;
      // A probe that showed nothing makes room for the next at once.
      return { phase: "open", until: verdict === "failed" ? now + settings.coolDownMs : now };
    default:
      return state satisfies never;
  }
}

function judgeClosed(
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
