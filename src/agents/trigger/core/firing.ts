/**
 * Schedules a trigger: its next time, its due start, and the retries of a failed start. Pure.
 *
 * FIRE-1  A time is committed as due before the first attempt of its start. It stays due until the start succeeds or fails for good.
 * FIRE-2  All attempts for one time make the same request with the same key, so they start one run or one turn.
 * FIRE-3  After an outage or a long start, all missed times fire together, once.
 * FIRE-4  A start with a transient error is retried for a day, after pauses of 1 s up to 5 min. Any other error is stored as `lastError`,
 *         and the trigger continues with its next time.
 * FIRE-5  A disabled trigger never fires. After it is enabled, it continues with the next time from then.
 */
import type { TriggerStarted, TriggerWhen } from "../../../protocol/trigger-api.ts";
import type { ErrorData } from "../../../shared/errors.ts";
import { toIso } from "../../../shared/time.ts";
import { nextTime, parseCron } from "./cron.ts";
import type { Due, Firing, TriggerRecord } from "./record.ts";
import { GIVE_UP_MS, LOST_ATTEMPT_MS, MAX_PAUSE_MS, MIN_PAUSE_MS } from "./trigger-limits.ts";

/** Codes of transient errors, even if they are not marked as retriable. */
const PASSING = new Set([
  "UNAVAILABLE",
  "RATE_LIMITED",
  "TOO_MANY_TURNS",
  "QUEUE_OVERFLOW",
  "INTERNAL_ERROR",
]);

/** Returns the first time after `after`, if any. Throws `INVALID_INPUT`. */
export function timeAfter(when: TriggerWhen, after: number): number | undefined {
  if ("webhook" in when) return undefined;
  if ("cron" in when) return nextTime(parseCron(when.cron, when.timeZone), after);
  const at = Date.parse(when.at);
  return at > after ? at : undefined;
}

/** Returns a new or changed trigger with its next time from `now`. Throws `INVALID_INPUT`. */
export function scheduled({ nextAt: _, ...record }: TriggerRecord, now: number): TriggerRecord {
  const next = record.enabled ? timeAfter(record.when, now) : undefined;
  return { ...record, ...(next === undefined ? {} : { nextAt: next }) };
}

/** Returns the trigger as disabled, without a due start. */
export function disabled({ nextAt: _, due: __, ...record }: TriggerRecord): TriggerRecord {
  return { ...record, enabled: false };
}

/**
 * Takes the start that is due. Returns it with the changed trigger, or `null`. `isLost` means that attempts of earlier instances can no
 * longer report.
 */
export function takeDue(
  record: TriggerRecord,
  now: number,
  { isLost = false } = {},
): { record: TriggerRecord; firing: Firing } | null {
  const { due, nextAt } = record;
  if (due !== undefined)
    return isLost || due.retryAt <= now
      ? attempted(record, { ...due, attempts: due.attempts + 1 }, now)
      : null;
  if (nextAt === undefined || nextAt > now) return null;
  const { starts, actsAs } = record;
  const noted = { scheduledAt: nextAt, since: now, starts, actsAs, attempts: 1, retryAt: now };
  return attempted(scheduled(record, now), noted, now);
}

function attempted(record: TriggerRecord, due: Due, now: number): { record: TriggerRecord; firing: Firing } {
  const { id, tenant } = record;
  const { starts, actsAs, scheduledAt } = due;
  return {
    record: { ...record, due: { ...due, retryAt: now + LOST_ATTEMPT_MS } },
    firing: { id, tenant, starts, actsAs, key: toIso(scheduledAt) },
  };
}

export function started(
  record: TriggerRecord,
  key: string,
  lastStarted: TriggerStarted,
  now: number,
): TriggerRecord {
  const { lastError: _, ...rest } = without(record, key);
  return { ...rest, lastFiredAt: now, lastStarted };
}

export function failed(record: TriggerRecord, key: string, error: ErrorData, now: number): TriggerRecord {
  const { code, message } = error;
  const noted = { ...record, lastError: { code, message, at: now } };
  const { due } = noted;
  if (due === undefined || keyOf(due) !== key) return noted;
  const pause = error.retryAfter ?? MIN_PAUSE_MS * 2 ** Math.min(due.attempts - 1, 20);
  const retryAt = now + Math.min(pause, MAX_PAUSE_MS);
  if (!mayPass(error) || retryAt > due.since + GIVE_UP_MS) return without(noted, key);
  return { ...noted, due: { ...due, retryAt } };
}

/** Returns the milliseconds until the next action, or `null`. */
export function dueIn({ due, nextAt }: TriggerRecord, now: number): number | null {
  const time = due?.retryAt ?? nextAt;
  return time === undefined ? null : Math.max(0, time - now);
}

function mayPass({ code, retriable }: ErrorData): boolean {
  return retriable || PASSING.has(code);
}

function without(record: TriggerRecord, key: string): TriggerRecord {
  const { due, ...rest } = record;
  return due !== undefined && keyOf(due) === key ? rest : record;
}

function keyOf({ scheduledAt }: Due): string {
  return toIso(scheduledAt);
}
