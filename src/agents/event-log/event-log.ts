/**
 * The actor `EventLog`: the log of a tenant's conversations and runs in one jurisdiction.
 *
 * EVLOG-8  A principal reaches only the log of its tenant. Events are for operators. A search by another principal finds messages of the
 *        principal's own conversations only.
 */
import { z } from "zod";
import { systemClock } from "../../ports/system.ts";
import {
  type EventFilter,
  type EventLogApi,
  type EventsRequest,
  LOGGED_TYPES,
  MAX_QUERY,
  MESSAGE_ROLES,
  type Publication,
  type SearchRequest,
} from "../../protocol/event-log.ts";
import { defined } from "../../shared/defined.ts";
import { asDone, asResult, notFound } from "../../shared/errors.ts";
import { pageOptionsSchema } from "../../shared/page.ts";
import { checkPrincipal, mayReadAll, type Principal } from "../../shared/principal.ts";
import { validateRequest } from "../../shared/validation.ts";
import { DurableActor } from "../base/durable-actor.ts";
import { checkOperator } from "../base/mailbox/dead-letter.ts";
import { LogFollowers } from "./log-followers.ts";
import { LogReader } from "./log-reader.ts";
import { LogStore } from "./log-store.ts";

const isPlace = (cursor: string) => /^\d{1,16}$/.test(cursor) && Number.isSafeInteger(Number(cursor));
const page = pageOptionsSchema(isPlace);
const name = z.string().max(200).exactOptional();
const time = z.number().exactOptional();

const filter = {
  types: z.array(z.enum(LOGGED_TYPES)).exactOptional(),
  conversation: name,
  run: name,
  agent: name,
  correlation: name,
  since: time,
  until: time,
  after: z.int().min(0).exactOptional(),
};

const followRequest = z.strictObject(filter);
const eventsRequest = page.extend(filter);
const searchRequest = page.omit({ order: true }).extend({
  ...{ q: z.string().max(MAX_QUERY), agent: name, user: name, since: time, until: time },
  role: z.enum(MESSAGE_ROLES).exactOptional(),
});

/** Milliseconds between two steps that give new readers to the index. */
const INDEXING_MS = 100;

export function createEventLogClass<Env extends Cloudflare.Env>(): new (
  ctx: DurableObjectState,
  env: Env,
) => DurableActor<Env> & EventLogApi {
  return class EventLog extends DurableActor<Env> implements EventLogApi {
    readonly #indexing = this.wakeups.add("readers", () => (this.#store.indexReaders() ? INDEXING_MS : null));
    readonly #store = new LogStore(
      this.platform,
      () => systemClock.now(),
      () => {
        this.#armed = this.#indexing.arm(INDEXING_MS);
      },
    );
    /** Resolves when the wake-up of the index is armed that a publication needs; `undefined` if it needs none. */
    #armed: Promise<void> | undefined;
    readonly #reader = new LogReader(this.platform.database, this.#store);
    readonly #followers = new LogFollowers(systemClock, this.#reader, () => this.#store.last);

    protected override get mailboxKind() {
      return "event-log";
    }

    protected override checkStorage() {
      super.checkStorage();
      void this.#store.exists;
    }

    async published(id: string) {
      return asResult(() => this.#store.published(id));
    }

    async publish(publication: Publication) {
      return asResult(async () => {
        this.checkPlace();
        this.#armed = undefined;
        const published = this.#store.publish(publication);
        const armed: Promise<void> | undefined = this.#armed;
        this.#followers.wake();
        await armed;
        return published;
      });
    }

    async replace(publication: Publication) {
      return asDone(() => this.#store.replace(publication));
    }

    async empty(conversationId: string) {
      return asResult(() => this.#store.empty(conversationId));
    }

    async events(principal: Principal, request: EventsRequest) {
      return asResult(() => {
        checkOperator(principal, this.mailboxAddress, this.name);
        const { limit, order, cursor, ...filter } = validateRequest(eventsRequest, request);
        return this.#reader.events(filter, { limit, order, cursor });
      });
    }

    async follow(principal: Principal, filter: EventFilter) {
      return asResult(() => {
        checkOperator(principal, this.mailboxAddress, this.name);
        return this.#followers.open(principal, validateRequest(followRequest, filter));
      });
    }

    async search(principal: Principal, request: SearchRequest) {
      return asResult(() => {
        checkPrincipal(principal);
        if (this.mailboxAddress?.tenant !== principal.tenant)
          throw notFound(`There is no actor "${this.name}".`);
        const reader = mayReadAll(principal) ? undefined : principal.subject;
        const { cursor, ...search } = validateRequest(searchRequest, request);
        return this.#reader.search({ ...search, ...defined({ cursor }) }, reader);
      });
    }
  };
}
