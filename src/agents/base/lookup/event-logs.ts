/**
 * The logs of tenants, as their conversations and runs publish to them.
 *
 * EVLOG-9  A conversation or a run publishes to the log of its tenant in the jurisdiction of its own id.
 */
import { unanswered, withDeadline } from "../../../ports/deadline.ts";
import { systemClock } from "../../../ports/system.ts";
import { type EventLogApi, eventLogId, loggedId, type Publication } from "../../../protocol/event-log.ts";
import { type Result, unwrap } from "../../../shared/errors.ts";
import { jurisdictionOf } from "../../../shared/location.ts";
import { durableActor } from "./durable-actors.ts";
import { workerClasses } from "./exported-classes.ts";

/** The writes of conversations and runs. Each rejects if the log does not answer. */
export interface EventLogWriter {
  published(tenant: string, id: string): Promise<number>;
  publish(tenant: string, publication: Publication): Promise<number>;
  replace(tenant: string, publication: Publication): Promise<unknown>;
  empty(tenant: string, conversationId: string): Promise<boolean>;
}

/** Milliseconds. A call that takes longer fails. Its later effect changes nothing that newer calls have published. */
const ANSWER_MS = 20_000;

export function eventLogs(env: object): EventLogWriter | null {
  if (!workerClasses(env).has("EventLog")) return null;
  const call = <Value>(
    tenant: string,
    id: string,
    act: (log: EventLogApi) => Promise<Result<Value>>,
  ): Promise<Value> =>
    withDeadline(
      systemClock,
      ANSWER_MS,
      async () => {
        const address = { kind: "event-log", tenant, id: eventLogId(jurisdictionOf(id)) };
        return unwrap(await act(await durableActor<EventLogApi>(env, address, "UNAVAILABLE")));
      },
      { reason: unanswered("The log of events", ANSWER_MS) },
    );
  return {
    published: (tenant, id) => call(tenant, id, (log) => log.published(id)),
    publish: (tenant, publication) => call(tenant, loggedId(publication), (log) => log.publish(publication)),
    replace: (tenant, publication) => call(tenant, loggedId(publication), (log) => log.replace(publication)),
    empty: (tenant, id) => call(tenant, id, (log) => log.empty(id)),
  };
}
