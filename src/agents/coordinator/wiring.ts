/** Builds the context of a run's actor, and connects its parts with each other and with the platform. */
import type { ChildRunApi } from "../../protocol/run-call.ts";
import type { RunCallerApi } from "../../protocol/workflow-call.ts";
import { defined } from "../../shared/defined.ts";
import { approvalsCopy } from "../base/copies/approvals-copy.ts";
import { Copy } from "../base/copies/copy.ts";
import { EventsTarget } from "../base/copies/events-target.ts";
import { CopiesWakeup, JournalCopy } from "../base/copies/journal-copy.ts";
import type { ActorWork, WakeupsOfActor } from "../base/durable-actor.ts";
import { durableActor } from "../base/lookup/durable-actors.ts";
import type { EventLogWriter } from "../base/lookup/event-logs.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import type { TenantTurns } from "../base/runtime/tenant-turns.ts";
import type { Outflows } from "../base/sockets/outflow.ts";
import type { ActorContext, CoordinatorApplication } from "./context.ts";
import { beginsWork } from "./core/run-envelopes.ts";
import { isOver } from "./core/state.ts";
import { RunTelemetry } from "./effects/run-telemetry.ts";
import { RunReaders } from "./inbound/run-readers.ts";
import { RunSockets } from "./inbound/run-sockets.ts";
import { RunWaiters } from "./inbound/run-waiters.ts";
import { loggedRun } from "./reads/logged-run.ts";
import { RunEvents } from "./reads/run-events.ts";
import { runSummary, waitingGates } from "./reads/run-views.ts";
import { RunRuntime } from "./run-runtime.ts";
import type { RunJournalRow } from "./store/run-journal.ts";

/** The members of a context that the platform, the application and other actors give. */
type Given = Omit<ActorContext, "armWakeup" | "armCopies" | "turn" | "listing" | "approvals"> &
  WakeupsOfActor;

type ActorPlatform = Pick<
  ActorContext,
  "clock" | "ids" | "database" | "keyValue" | "name" | "checkPlace" | "clients" | "waitUntil"
> &
  WakeupsOfActor;

export function givenContext(
  application: CoordinatorApplication,
  env: object,
  mailbox: Mailbox,
  platform: ActorPlatform,
): Given {
  const { active: runs, tokens } = application.tree;
  return {
    ...application,
    ...platform,
    bounds: { share: { runs, tokens }, ...defined({ width: application.fanOutWidth }) },
    // Starts do not use the reserved room (MAIL-20).
    send: (envelope) => mailbox.send(envelope, { owed: !beginsWork(envelope) }),
    outboxRoom: () => mailbox.room(),
    withdraw: ({ to, type }) => mailbox.withdraw(to, type),
    run: (tenant, id) => durableActor<ChildRunApi>(env, { kind: "coordinator", tenant, id }),
    conversation: (tenant, id) => durableActor<RunCallerApi>(env, { kind: "conversation", tenant, id }),
    sender: (address) => durableActor(env, address),
  };
}

export interface CoordinatorContext extends ActorContext {
  runtime: RunRuntime;
  approvals: Copy;
  listing: Copy;
  events: RunEvents;
  logged: JournalCopy<EventLogWriter, RunJournalRow>;
  readers: RunReaders;
  sockets: RunSockets;
  waiters: RunWaiters;
  work: ActorWork;
  /** Calls `sockets.expire` at a time, in milliseconds since the epoch. Resolves when that is durable. */
  expireAt(time: number): Promise<void>;
}

/** Builds the context. `turns` are the turns of all runs in this isolate, `outflows` the budgets of their readers. */
export function connected(given: Given, turns: TenantTurns, outflows: Outflows): CoordinatorContext {
  // SAFETY: a part reads the other parts when it works. All parts are there by then.
  const context = { ...given } as unknown as CoordinatorContext;
  const { clock, directory, wakeups, ownWakeup } = given;
  const whileExists = (wake: () => number | null) => () => (context.runtime.exists ? wake() : null);
  // The listing and the log share a wake-up, because both change with the status. Each change of the status is noted in its transaction.
  const copies = new CopiesWakeup(
    clock,
    ownWakeup(
      "listing",
      whileExists(() => {
        copies.fires();
        const pauses = [context.listing.wake(), context.logged.wake()].filter((pause) => pause !== null);
        return pauses.length === 0 ? null : Math.min(...pauses);
      }),
    ),
    () => context.listing.isBehind || context.logged.isBehind,
  );
  context.armWakeup = wakeups.add("run", () => {
    context.runtime.reconcile();
    // Without work, the copies have a wake-up of their own.
    if (context.runtime.exists && context.runtime.dueIn !== null) context.logged.wake();
    return context.runtime.dueIn;
  }).arm;
  context.armCopies = (dueIn) => {
    if (context.logged.exists) copies.armInCommit(dueIn);
  };
  const expiry = wakeups.add("expiry", () => context.sockets.expire());
  context.expireAt = (time) => expiry.arm(Math.max(0, time - clock.now()));
  context.turn = () => turns.take(context.runtime.state.record.tenant, clock);
  context.approvals = approvalsCopy({
    ...{ clock, directory },
    wakeup: ownWakeup(
      "approvals",
      whileExists(() => context.approvals.wake()),
    ),
    waiting: () => {
      const { state } = context.runtime;
      const { tenant, id: place } = state.record;
      return { tenant, place, seq: state.seq, waiting: waitingGates(state) };
    },
  });
  context.listing = new Copy({
    clock,
    wakeup: copies,
    directory,
    put: (listing) => {
      const { record, seq } = context.runtime.state;
      return listing.putRun(record.tenant, { ...runSummary(context.runtime), seq });
    },
    changedAt: () => context.runtime.endedAt ?? context.runtime.state.record.createdAt,
  });
  const telemetry = new RunTelemetry(given);
  context.runtime = new RunRuntime(context, (commit) => {
    const { before, state } = commit;
    context.readers.wake();
    context.sockets.wake();
    if (isOver(state)) context.waiters.wake();
    if (commit.changesGates) void context.approvals.publish();
    // First the note: the listing disarms the wake-up only if the log has the commit.
    context.logged.changed();
    if (isOver(state)) void context.logged.publish();
    if (commit.changesStatus) void context.listing.publish();
    // The last step: an error of the telemetry stops no other step.
    telemetry.ended(before, commit.row);
  });
  context.logged = new JournalCopy(
    { clock, runtime: context.runtime },
    new EventsTarget(loggedRun(context.runtime, given)),
    copies,
  );
  context.events = new RunEvents(context.runtime.store.journal);
  context.readers = new RunReaders(context);
  context.sockets = new RunSockets(context, outflows);
  context.waiters = new RunWaiters(clock);
  context.work = {
    wake: async () => {
      if (context.runtime.exists) context.sockets.restore();
      await context.runtime.wake();
    },
    whenArmed: () => context.runtime.whenArmed(),
  };
  return context;
}
