/** The `Trigger` actor: starts a run of a workflow, or a turn of a conversation, at a time, by cron, or by a signed webhook. */
import type { TriggerWriter } from "../../d1/triggers.ts";
import { systemClock } from "../../ports/system.ts";
import { checkNew } from "../../protocol/location-policy.ts";
import {
  type ChangeTrigger,
  type CreateTrigger,
  changeTrigger,
  type Delivery,
  type TriggerApi,
  type TriggerStarted,
} from "../../protocol/trigger-api.ts";
import { unknownWebhook } from "../../protocol/webhook.ts";
import { trailOf } from "../../shared/call-trail.ts";
import { asDone, asResult, conflict, invalid, type Result, unwrap } from "../../shared/errors.ts";
import type { Principal } from "../../shared/principal.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { validateRequest } from "../../shared/validation.ts";
import type { Application } from "../base/application.ts";
import { Copy } from "../base/copies/copy.ts";
import { DurableActor } from "../base/durable-actor.ts";
import type { TriggerRecord } from "./core/record.ts";
import { actorOf, start } from "./effects/start.ts";
import {
  changed,
  checkChanger,
  checkReader,
  isStop,
  isWebhook,
  parseCreate,
  triggerSummary,
  triggerView,
  updateTime,
} from "./inbound/requests.ts";
import { beforeBody, checkSigned, newSecret, startsWith } from "./inbound/webhook.ts";
import { TriggerRuntime } from "./runtime.ts";

export interface TriggerApplication
  extends Pick<Application, "actors" | "workflow" | "checkedInput" | "location"> {
  /** Returns `null` if the deployment has no directory. */
  triggers(): TriggerWriter | null;
  /** Reports whether a subject may still act in its tenant. Called before each start. */
  mayAct(principal: Principal): boolean | Promise<boolean>;
}

export function createTriggerClass<Env extends Cloudflare.Env>(
  application: (env: Env) => TriggerApplication,
): new (
  ctx: DurableObjectState,
  env: Env,
) => DurableActor<Env> & TriggerApi {
  return class Trigger extends DurableActor<Env> implements TriggerApi {
    readonly #application = application(this.env);

    readonly #runtime = new TriggerRuntime({
      ...this.platform,
      armWakeup: this.wakeups.add("fire", () => {
        this.#runtime.reconcile();
        return this.#runtime.dueIn;
      }).arm,
      note: () => this.#listing.note(),
      start: (firing) => start(this.#application, firing),
    });

    readonly #listing: Copy = new Copy({
      clock: systemClock,
      wakeup: this.ownWakeup("listing", () =>
        this.#runtime.store.find() === undefined ? null : this.#listing.wake(),
      ),
      directory: this.#application.triggers,
      put: (directory) => {
        const record = this.#runtime.store.get();
        return directory.put(record.tenant, triggerSummary(record));
      },
      changedAt: () => this.#runtime.store.get().updatedAt,
    });

    protected override get mailboxKind() {
      return "trigger";
    }

    protected override checkStorage() {
      super.checkStorage();
      this.#runtime.store.checkVersion();
    }

    protected override get work() {
      return this.#runtime;
    }

    async create(principal: Principal, input: CreateTrigger) {
      return asResult(async () => {
        this.checkPlace();
        const record = parseCreate(principal, input, systemClock.now());
        const { tenant, id, when } = record;
        if (this.name !== `${tenant}:${id}`)
          throw invalid(`The request reached the wrong actor. Send it to the actor "${tenant}:${id}".`);
        checkNew(id, this.#application.location(tenant), "/id");
        await this.#checkStarts(record);
        const secret = isWebhook(when) ? { secret: newSecret() } : {};
        await this.#runtime.create({ ...record, ...secret });
        await this.#listing.publish();
        return { ...triggerView(record), ...secret };
      });
    }

    async view(principal: Principal) {
      return asResult(() => {
        const record = this.#runtime.store.get();
        checkReader(record, principal);
        return triggerView(record);
      });
    }

    async update(principal: Principal, input: ChangeTrigger) {
      return asResult(async () => {
        const before = this.#runtime.store.get();
        checkReader(before, principal);
        const change = validateRequest(changeTrigger, input);
        const apply = (record: TriggerRecord, now: number) => {
          checkChanger(record, principal, isStop(change));
          return changed(record, change, principal, now);
        };
        if (isStop(change)) return triggerView(await this.#changed(apply));
        return triggerView(await this.#checked(before, apply));
      });
    }

    async rotate(principal: Principal) {
      return asResult(async () => {
        const secret = newSecret();
        const record = await this.#checked(this.#runtime.store.get(), (before, now) => {
          checkChanger(before, principal);
          if (!isWebhook(before.when))
            throw conflict("Only a webhook has a secret. This trigger has a schedule.");
          return { ...before, secret, actsAs: principal.subject, updatedAt: updateTime(before, now) };
        });
        return { ...triggerView(record), secret };
      });
    }

    async remove(principal: Principal): Promise<Result<null>> {
      return asDone(async () => {
        const { tenant, id } = this.#runtime.store.get();
        checkChanger(this.#runtime.store.get(), principal, true);
        // A running put would restore the row.
        await this.#listing.publish();
        await this.#application.triggers()?.remove(tenant, id);
        await this.destroyUnused(() => false);
      });
    }

    async deliver(delivery: Delivery): Promise<Result<TriggerStarted>> {
      return asResult(async () => {
        const record = this.#runtime.store.find();
        if (record === undefined) {
          await this.destroyUnused(() => this.#runtime.store.find() !== undefined);
          throw unknownWebhook();
        }
        await checkSigned(record, delivery, systemClock.now());
        const { id, tenant, actsAs, enabled } = record;
        if (!enabled) throw conflict("The trigger is not enabled.");
        const starts = startsWith(record.starts, delivery.body);
        const hash = await sha256Hex(new TextDecoder().decode(delivery.body));
        const firing = { id, tenant, starts, actsAs, key: delivery.id, ...trailOf(delivery) };
        return this.#runtime.deliver({ id: delivery.id, hash }, firing);
      });
    }

    /** Commits and publishes a change. Throws what `apply` throws. */
    async #changed(apply: (record: TriggerRecord, now: number) => TriggerRecord): Promise<TriggerRecord> {
      const record = await this.#runtime.update(apply);
      await this.#listing.publish();
      return record;
    }

    /** Makes a change after a check of its start. Throws `CONFLICT` if another request changed the trigger since (TRIGGER-4). */
    async #checked(
      before: TriggerRecord,
      apply: (record: TriggerRecord, now: number) => TriggerRecord,
    ): Promise<TriggerRecord> {
      await this.#checkStarts(apply(before, systemClock.now()));
      return this.#changed((record, now) => {
        if (record.updatedAt !== before.updatedAt)
          throw conflict("The trigger has changed since you read it. Read it again and repeat your change.");
        return apply(record, now);
      });
    }

    /** Throws unless the trigger may start its run or turn as its subject (TRIGGER-4). */
    async #checkStarts(record: TriggerRecord): Promise<void> {
      const { starts, tenant, when } = record;
      if ("conversationId" in starts) {
        const conversation = await this.#application.actors.conversation(tenant, starts.conversationId);
        unwrap(await conversation.checkSpeaker(actorOf(record)));
        return;
      }
      const workflow = await this.#application.workflow(tenant, starts.workflow);
      const asked = isWebhook(when) ? beforeBody(workflow) : workflow;
      this.#application.checkedInput(asked, starts.input ?? {}, "/starts/input");
    }
  };
}
