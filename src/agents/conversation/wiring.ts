/** Builds the context of a conversation's actor, and connects its parts with each other and with the platform. */
import { SpanQueue } from "../../adapters/telemetry/span-queue.ts";
import { ResultKeeper } from "../../attachments/result-keeper.ts";
import { endsTurn } from "../../protocol/frames.ts";
import type { MailboxPeer } from "../../protocol/mailbox-api.ts";
import { defined } from "../../shared/defined.ts";
import { approvalsCopy } from "../base/copies/approvals-copy.ts";
import type { Copy } from "../base/copies/copy.ts";
import type { ActorWork, WakeupsOfActor } from "../base/durable-actor.ts";
import { durableActor } from "../base/lookup/durable-actors.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import type { Outflows } from "../base/sockets/outflow.ts";
import type { ActorContext, ConversationApplication } from "./context.ts";
import { ConversationListing } from "./copies/conversation-listing.ts";
import { JournalCopies } from "./copies/journal-copies.ts";
import { UsageCopy } from "./copies/usage-copy.ts";
import { waitingCalls } from "./core/waiting-calls.ts";
import { ConversationBackup } from "./data/backup.ts";
import { Erasing } from "./data/erasing.ts";
import { ConversationFork } from "./data/fork.ts";
import { ConversationRemoval } from "./data/removal.ts";
import { Retention } from "./data/retention.ts";
import { conversationMedia } from "./effects/media.ts";
import { ConversationAccess } from "./inbound/access.ts";
import { Claims } from "./inbound/claims.ts";
import type { ConnectionContext } from "./inbound/connections.ts";
import { Ingress } from "./inbound/ingress.ts";
import { Opening } from "./inbound/opening.ts";
import { broughtBy, Participants } from "./inbound/participants.ts";
import { PrincipalRequests } from "./inbound/principal-requests.ts";
import { ConversationReaders } from "./inbound/readers.ts";
import { Replacing } from "./inbound/replacing.ts";
import { Stops } from "./inbound/stops.ts";
import { Subscribers } from "./inbound/subscribers.ts";
import { Webhooks } from "./inbound/webhooks.ts";
import { outgoing } from "./mailbox-handlers.ts";
import { ConversationRecord } from "./reads/conversation-record.ts";
import { ConversationQueries } from "./reads/queries.ts";
import { remoteTasks } from "./results/remote-tasks.ts";
import { ConversationRuntime } from "./runtime.ts";

/** The members of a context that the platform, the application and other actors give. */
type Given = Omit<
  ActorContext,
  | "publish"
  | "onUsage"
  | "onCommit"
  | "approvals"
  | "listing"
  | "expel"
  | "armWakeup"
  | "armCopies"
  | "media"
  | "isErased"
> &
  WakeupsOfActor;

export type ActorPlatform = Pick<
  ActorContext,
  "clock" | "ids" | "database" | "keyValue" | "name" | "owner" | "clients" | "waitUntil"
> &
  WakeupsOfActor;

export function givenContext(
  application: ConversationApplication,
  env: object,
  mailbox: Mailbox,
  platform: ActorPlatform,
): Given {
  const { clock, waitUntil } = platform;
  const { actors, exporter, location, log, ...given } = application;
  const { agent, conversation, coordinator: run } = actors;
  const spans = exporter && new SpanQueue(clock, exporter, waitUntil).add;
  return {
    ...{ ...given, ...platform, location, agent, conversation, run },
    ...outgoing(mailbox),
    forgetMail: () => mailbox.forget(),
    resultStores: {
      keeper: new ResultKeeper(given.attachments, given.maxAttachmentBytes, clock),
      sender: (address) => durableActor(env, address),
    },
    invite: (record, id) => broughtBy({ clock, agent, location }, record, id),
    ...defined({ spans, log }),
  };
}

export interface ConversationContext extends ActorContext {
  access: ConversationAccess;
  listing: ConversationListing;
  usage: UsageCopy;
  copies: JournalCopies;
  approvals: Copy;
  runtime: ConversationRuntime;
  queries: ConversationQueries;
  record: ConversationRecord;
  readers: ConversationReaders;
  stops: Stops;
  ingress: Ingress;
  subscribers: Subscribers;
  webhooks: Webhooks;
  /** The receiver of the cancellations of remote tasks. */
  remoteTasks: MailboxPeer;
  participants: Participants;
  requests: PrincipalRequests;
  replacing: Replacing;
  connections: ConnectionContext;
  opening: Opening;
  removal: ConversationRemoval;
  erasing: Erasing;
  backup: ConversationBackup;
  fork: ConversationFork;
  work: ActorWork;
  /** Wakes the actor when the authority of a reader ends. */
  expireAt(time: number): Promise<void>;
}

/** Builds the context. `outflows`: the budgets that the conversations of an isolate share. */
export function connected(given: Given, outflows: Outflows): ConversationContext {
  // SAFETY: a part reads the other parts when it works. All parts are there by then.
  const context = { ...given } as unknown as ConversationContext;
  const { clock, directory, attachments, wakeups, ownWakeup } = given;
  const window = wakeups.add("window", () => {
    if (!context.runtime.exists) return null;
    context.runtime.reconcile();
    const times = [context.runtime.dueIn, context.usage.wake(), context.copies.wake()].filter(
      (time) => time !== null,
    );
    return times.length === 0 ? null : Math.min(...times);
  });
  const expiry = wakeups.add("expiry", () => context.readers.expire());
  const listed = (name: "approvals" | "listing") =>
    ownWakeup(name, () => (context.runtime.exists ? context[name].wake() : null));
  const named = (name: "erasing" | "backup" | "removal") => wakeups.add(name, () => context[name].wake());
  Object.assign(context, {
    armWakeup: window.arm,
    armCopies: (dueIn) => context.copies.armInCommit(dueIn),
    isErased: (operationId) => context.erasing.isErased(operationId),
    expireAt: (time) => expiry.arm(Math.max(0, time - clock.now())),
    expel: () => context.readers.expel((principal) => context.access.mayRead(principal)),
    onUsage: () => context.usage.changed(),
    onCommit: () => context.copies.events.changed(),
    publish: (frames) => {
      const isEnd = frames.some(endsTurn);
      if (isEnd) context.usage.changed();
      if (isEnd || frames.some(({ type }) => type === "turn.started")) context.copies.turns.changed();
      if (frames.some(({ type, data }) => type === "conversation.updated" && data.title !== undefined))
        void context.listing.publish();
      context.readers.publish(frames);
    },
    ...conversationMedia(attachments, () => context.owner()),
  } satisfies Partial<ConversationContext>);
  context.access = new ConversationAccess(context);
  context.listing = new ConversationListing(context, listed("listing"));
  context.usage = new UsageCopy(context, { disarm: () => !context.copies.isBehind && window.disarm() });
  context.copies = new JournalCopies(context, {
    arm: window.arm,
    disarm: () => context.runtime.dueIn === null && !context.usage.isBehind && window.disarm(),
  });
  context.approvals = approvalsCopy({
    ...{ clock, directory, wakeup: listed("approvals") },
    waiting: () => {
      const { state } = context.runtime;
      const { tenant, id: place } = state.record;
      return { tenant, place, seq: state.seq, waiting: waitingCalls(state) };
    },
  });
  const retained = new Retention(
    context,
    ownWakeup("retention", () => retained.wake()),
  );
  context.retained = retained;
  context.subscribers = new Subscribers(context);
  context.runtime = new ConversationRuntime(context);
  context.queries = new ConversationQueries(context.runtime.store);
  context.webhooks = new Webhooks(context);
  context.remoteTasks = remoteTasks(context);
  context.record = new ConversationRecord(context.runtime.store);
  context.readers = new ConversationReaders(context, outflows);
  context.stops = new Stops(context);
  context.ingress = new Ingress(context);
  context.participants = new Participants(context);
  context.requests = new PrincipalRequests(context);
  context.replacing = new Replacing(context);
  context.connections = {
    ...{ clock, stops: context.stops, readers: context.readers.sockets, claims: new Claims(context) },
    cursor: (principal, start) => {
      context.access.stateFor(principal);
      return context.readers.cursor(start);
    },
    startTurn: (principal, input) => context.requests.accept(principal, input),
    approve: async (principal, { v: _v, type: _type, operationId, ...answer }) => {
      await context.requests.approve(principal, operationId, answer);
    },
    submitResult: async (principal, { v: _v, type: _type, ...result }) => {
      await context.requests.submit(principal, [result]);
    },
    connections: () => [...given.clients()].length,
  };
  context.opening = new Opening(context);
  context.erasing = new Erasing(context, named("erasing"));
  context.backup = new ConversationBackup(context, named("backup"));
  context.fork = new ConversationFork(context);
  context.removal = new ConversationRemoval(context, named("removal"));
  context.work = {
    wake: async () => {
      if (context.runtime.exists) {
        await Promise.all(retained.arm(context.runtime.state.record));
        context.readers.sockets.restore(context.runtime.state.seq);
        context.expel();
        await context.subscribers.resume();
      } else context.removal.resume();
      await context.runtime.wake();
    },
    whenArmed: () => context.runtime.whenArmed(),
  };
  return context;
}
