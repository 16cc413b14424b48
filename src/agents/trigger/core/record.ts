/** A trigger as its actor stores it. Times are milliseconds since the epoch. */
import type { TriggerStarted, TriggerStarts, TriggerWhen } from "../../../protocol/trigger-api.ts";
import type { CallTrail } from "../../../shared/call-trail.ts";

export interface TriggerRecord {
  readonly id: string;
  readonly tenant: string;
  readonly when: TriggerWhen;
  readonly starts: TriggerStarts;
  readonly enabled: boolean;
  readonly createdBy: string;
  readonly actsAs: string;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** Of a webhook. No view contains it. */
  readonly secret?: string;
  /** The next time; absent where there is none, and while the trigger is not enabled. */
  readonly nextAt?: number;
  readonly due?: Due;
  readonly lastFiredAt?: number;
  readonly lastStarted?: TriggerStarted;
  readonly lastError?: { readonly code: string; readonly message: string; readonly at: number };
}

/** A time that has come and whose start is not known to have succeeded. */
export interface Due {
  readonly scheduledAt: number;
  /** The time at which it was noted. */
  readonly since: number;
  /** As the trigger had it then: every attempt makes the same request. */
  readonly starts: TriggerStarts;
  readonly actsAs: string;
  readonly attempts: number;
  /** The time of the next attempt, if the present one reports nothing. */
  readonly retryAt: number;
}

/** One start of a trigger. */
export interface Firing extends Pick<CallTrail, "traceparent"> {
  readonly id: string;
  readonly tenant: string;
  readonly starts: TriggerStarts;
  readonly actsAs: string;
  /** Identifies it among all starts of the trigger: the scheduled time, or the id of the delivery. */
  readonly key: string;
}
