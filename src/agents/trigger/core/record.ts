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
  /** The secret of a webhook. Views never contain it. */
  readonly secret?: string;
  /** The next time. Absent if there is no next time, or if the trigger is disabled. */
  readonly nextAt?: number;
  readonly due?: Due;
  readonly lastFiredAt?: number;
  readonly lastStarted?: TriggerStarted;
  readonly lastError?: { readonly code: string; readonly message: string; readonly at: number };
}

/** A time that has come, without a confirmed start. */
export interface Due {
  readonly scheduledAt: number;
  /** When it was committed as due. */
  readonly since: number;
  /** The trigger's `starts` at that time, so every attempt makes the same request. */
  readonly starts: TriggerStarts;
  readonly actsAs: string;
  readonly attempts: number;
  /** The time of the next attempt, if the current attempt does not report. */
  readonly retryAt: number;
}

export interface Firing extends Pick<CallTrail, "traceparent"> {
  readonly id: string;
  readonly tenant: string;
  readonly starts: TriggerStarts;
  readonly actsAs: string;
  /** Identifies the start within the trigger: the scheduled time, or the id of the delivery. */
  readonly key: string;
}
