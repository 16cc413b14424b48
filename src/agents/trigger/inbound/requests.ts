/**
 * The inbound requests of a trigger, with their access checks.
 *
 * TRIGGER-1  A trigger is visible to the subject that it acts as, and to operators and administrators of its tenant. For others it does not
 *            exist.
 * TRIGGER-2  Authors and administrators create and change triggers. The subject that a trigger acts as may disable and delete it without a
 *            role.
 * TRIGGER-3  Changing a trigger or its secret takes it over: it acts as that subject from then on. Disabling it does not.
 * TRIGGER-4  The trigger's start is checked for the subject that it will act as, before the trigger is stored.
 */
import {
  type ChangeTrigger,
  type CreateTrigger,
  createTrigger,
  type TriggerStarts,
  type TriggerSummary,
  type TriggerView,
  type TriggerWhen,
} from "../../../protocol/trigger-api.ts";
import { webhookPath } from "../../../protocol/webhook.ts";
import { parseContent } from "../../../shared/content.ts";
import { defined } from "../../../shared/defined.ts";
import { forbidden, tooLarge } from "../../../shared/errors.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import { mayAuthor, mayReadAll, type Principal } from "../../../shared/principal.ts";
import { toIso } from "../../../shared/time.ts";
import { invalidAt, validateRequest } from "../../../shared/validation.ts";
import { disabled, scheduled, timeAfter } from "../core/firing.ts";
import type { TriggerRecord } from "../core/record.ts";
import { MAX_FIRST_WAIT_MS, MAX_STARTS_LENGTH } from "../core/trigger-limits.ts";
import { unknownTrigger } from "../store/trigger-store.ts";

/** Returns a new trigger from its request, without a secret. Throws `INVALID_INPUT`, and `FORBIDDEN` (TRIGGER-2). */
export function parseCreate(
  { subject, tenant, roles }: Principal,
  input: CreateTrigger,
  now: number,
): TriggerRecord {
  requireAuthor({ subject, tenant, roles });
  const { id, when, starts, enabled = true } = validateRequest(createTrigger, input);
  const record = { id, tenant, when, starts: checkedStarts(starts, when), enabled };
  checkTime(when, now);
  return scheduled({ ...record, createdBy: subject, actsAs: subject, createdAt: now, updatedAt: now }, now);
}

export function isStop(change: ChangeTrigger): boolean {
  return change.enabled === false && change.when === undefined && change.starts === undefined;
}

/** Returns the trigger with a change by a principal. Throws `INVALID_INPUT`. */
export function changed(
  before: TriggerRecord,
  change: ChangeTrigger,
  { subject }: Principal,
  now: number,
): TriggerRecord {
  const updatedAt = updateTime(before, now);
  if (isStop(change)) return disabled({ ...before, updatedAt });
  const { when = before.when, starts = before.starts, enabled = before.enabled } = change;
  if (isWebhook(when) !== isWebhook(before.when))
    throw invalidAt("/when", "A webhook and a time cannot replace each other. Create another trigger.");
  if (change.when !== undefined) checkTime(when, now);
  const next = {
    ...before,
    when,
    starts: checkedStarts(starts, when),
    enabled,
    actsAs: subject,
    updatedAt,
  };
  if (!enabled) return disabled(next);
  return change.when !== undefined || !before.enabled ? scheduled(next, now) : next;
}

/** Throws `NOT_FOUND` unless the principal may see the trigger (TRIGGER-1). */
export function checkReader({ tenant, actsAs }: TriggerRecord, principal: Principal): void {
  if (principal.tenant !== tenant) throw unknownTrigger();
  if (principal.subject !== actsAs && !mayReadAll(principal)) throw unknownTrigger();
}

/** Throws as `checkReader`, and `FORBIDDEN` unless the principal may change the trigger (TRIGGER-2). */
export function checkChanger(record: TriggerRecord, principal: Principal, stops = false): void {
  checkReader(record, principal);
  if (!stops || principal.subject !== record.actsAs) requireAuthor(principal);
}

export function triggerView(record: TriggerRecord): TriggerView {
  const { id, tenant, when, starts, enabled, createdBy, actsAs, due, lastError, nextAt, lastFiredAt } =
    record;
  const iso = (time: number | undefined) => (time === undefined ? undefined : toIso(time));
  return {
    id,
    when,
    starts,
    enabled,
    createdBy,
    actsAs,
    createdAt: toIso(record.createdAt),
    updatedAt: toIso(record.updatedAt),
    ...defined({
      jurisdiction: jurisdictionOf(id),
      nextAt: iso(nextAt),
      due: due && { scheduledAt: toIso(due.scheduledAt), attempts: due.attempts },
      lastFiredAt: iso(lastFiredAt),
      lastStarted: record.lastStarted,
      lastError: lastError && { ...lastError, at: toIso(lastError.at) },
      webhookPath: isWebhook(when) ? webhookPath(tenant, id) : undefined,
    }),
  };
}

export function triggerSummary(record: TriggerRecord): TriggerSummary {
  const { id, jurisdiction, when, starts, enabled, createdBy, actsAs, createdAt, updatedAt } =
    triggerView(record);
  const target =
    "workflow" in starts ? { workflow: starts.workflow } : { conversationId: starts.conversationId };
  const facts = { id, when, starts: target, enabled, createdBy, actsAs, createdAt, updatedAt };
  return { ...facts, ...defined({ jurisdiction }) };
}

/** Returns the time of a change. Times ascend even if the clock does not. */
export function updateTime({ updatedAt }: TriggerRecord, now: number): number {
  return Math.max(now, updatedAt + 1);
}

export function isWebhook(when: TriggerWhen): boolean {
  return "webhook" in when;
}

function requireAuthor(principal: Principal): void {
  if (mayAuthor(principal)) return;
  throw forbidden("Only authors and administrators may create and change triggers.");
}

function checkTime(when: TriggerWhen, now: number): void {
  if (isWebhook(when)) return;
  const next = timeAfter(when, now);
  if ("at" in when) {
    if (next === undefined) throw invalidAt("/when/at", "Must name a time in the future.");
  } else if ("cron" in when && (next === undefined || next > now + MAX_FIRST_WAIT_MS)) {
    throw invalidAt(
      "/when/cron",
      `The cron expression "${when.cron}" has no date in the next ten years. Check the day and the month.`,
    );
  }
}

function checkedStarts(starts: TriggerStarts, when: TriggerWhen): TriggerStarts {
  const { length } = JSON.stringify(starts);
  if (length > MAX_STARTS_LENGTH)
    throw tooLarge(`\`starts\` has ${length} characters as JSON. The maximum is ${MAX_STARTS_LENGTH}.`);
  if ("workflow" in starts) return starts;
  if (starts.content !== undefined) parseContent(starts.content, "/starts/content");
  else if (!isWebhook(when))
    throw invalidAt("/starts/content", "Is required, unless the trigger is a webhook.");
  return starts;
}
