/** The parts of a conversation's actor, connected with each other and with the platform. */

import { SpanQueue } from "../../adapters/telemetry/span-queue.ts";
import type { AttachmentStore } from "../../attachments/attachment-store.ts";
import type { Directory } from "../../d1/directory.ts";
import type { Span, SpanExporter } from "../../model/span.ts";
import type { AgentApi } from "../../protocol/agent-api.ts";
import { endsTurn } from "../../protocol/frames.ts";
import type { Mailbox } from "../base/mailbox/mailbox.ts";
import { approvalsProjection } from "../base/projections/approvals-projection.ts";
import type { Projection } from "../base/projections/projection.ts";
import type { OwnedStore } from "../base/removal/owned-stores.ts";
import type { Client } from "../base/sockets/client.ts";
import type { Outflows } from "../base/sockets/outflow.ts";
import { Wakeups } from "../base/timers/wakeups.ts";
import { takeAgentCalls } from "./agent-calls.ts";
import { type BackupPorts, ConversationBackup } from "./backup.ts";
import { waitingCalls } from "./core/waiting-calls.ts";
import { conversationMedia } from "./effects/media.ts";
import { Erasing } from "./erasing.ts";
import { mayRead } from "./inbound/access.ts";
import { broughtBy } from "./inbound/participants.ts";
import { ConversationReaders } from "./inbound/readers.ts";
import { takeLearnedAnswers } from "./learned-answers.ts";
import { takeLeaseAnswers } from "./lease-answers.ts";
import { Opening, type OpeningPorts } from "./opening.ts";
import { type Outbound, type OutgoingPorts, outgoing } from "./outgoing.ts";
import { Announcement } from "./projections/announcement.ts";
import { UsageProjection } from "./projections/usage-projection.ts";
import { ConversationQueries } from "./reads/queries.ts";
import { ConversationRemoval, type ConversationRemovalPorts } from "./removal.ts";
import { takeRunInvitations } from "./run-invitations.ts";
import { type ConversationPorts, ConversationRuntime } from "./runtime.ts";
import { takeWorkflowCalls } from "./workflow-calls.ts";

/** The ports of the runtime that the parts provide themselves. */
type Own =
  | "media"
  | "spans"
  | "log"
  | "armWakeup"
  | "announce"
  | "relist"
  | "invite"
  | "publish"
  | "waitingChanged"
  | "onWaiting"
  | keyof OutgoingPorts;

export interface PartsPorts extends Omit<ConversationPorts, Own> {
  /** The budgets that the conversations of an isolate share. */
  shared: { outflows: Outflows };
  /** `null` where attachments are not stored. */
  attachments: AttachmentStore | null;
  /** Returns `null` where there is no directory. */
  directory(): Directory | null;
  /** Returns the actor's mailbox. */
  mailbox(): Outbound & Pick<Mailbox, "forget">;
  /** Returns the stores outside of actors that hold data of conversations. */
  stores(): readonly OwnedStore[];
  /** The tenant and the id in the actor's name. */
  owner(): { tenant: string; conversationId: string };
  /** Finds the actor of another conversation. */
  conversation: ConversationRemovalPorts["conversation"];
  /** Finds the actor of an agent. */
  agent(tenant: string, id: string): Promise<Pick<AgentApi, "persona" | "offerMemories" | "searchMemories">>;
  location: OpeningPorts["location"];
  /** Checks the versions that an import brings. */
  importedChain: BackupPorts["importedChain"];
  /** Returns the open WebSockets. */
  clients(): Iterable<Client>;
  /** Sends spans; absent where they are not exported. */
  exporter: SpanExporter | undefined;
  /** Writes spans to the log. Absent if spans are not logged. */
  log: ((spans: readonly Span[]) => void) | undefined;
  /** Keeps the actor alive for work. */
  waitUntil(work: Promise<unknown>): void;
}

export class ConversationParts {
  /** The names are stored with the jobs: never change them. `window` wakes active turns. */
  readonly wakeups = new Wakeups(
    {
      window: () => {
        if (!this.runtime.exists) return null;
        this.runtime.reconcile();
        const times = [this.runtime.dueIn, this.usage.wake()].filter((time) => time !== null);
        return times.length === 0 ? null : Math.min(...times);
      },
      approvals: () => (this.runtime.exists ? this.approvals.wake() : null),
      directory: () => (this.runtime.exists ? this.announcement.listing.wake() : null),
      registration: () => (this.runtime.exists ? this.announcement.noteAgain() : null),
      expiry: () => this.readers.expire(),
      removal: () => this.removal.wake(),
      erasing: () => this.erasing.wake(),
      import: () => this.backup.wake(),
    },
    { early: ["window"] },
  );
  readonly announcement: Announcement;
  readonly usage: UsageProjection;
  /** The calls that wait for people, in the directory. */
  readonly approvals: Projection;
  readonly runtime: ConversationRuntime;
  readonly queries: ConversationQueries;
  readonly readers: ConversationReaders;
  readonly opening: Opening;
  readonly removal: ConversationRemoval;
  readonly erasing: Erasing;
  readonly backup: ConversationBackup;

  constructor(private readonly ports: PartsPorts) {
    const { shared, attachments, directory, clients, database, clock, exporter } = ports;
    const mail = outgoing(() => ports.mailbox());
    this.announcement = new Announcement({
      record: () => this.runtime.state.record,
      directory,
      send: mail.send,
      transaction: (body) => database.transaction(body),
      clock,
      wakeup: this.wakeups.named("directory"),
    });
    this.usage = new UsageProjection({
      state: () => this.runtime.state,
      directory,
      clock,
      isDue: () => this.runtime.dueIn !== null,
      disarm: () => this.wakeups.disarm("window"),
    });
    this.approvals = approvalsProjection({
      clock,
      directory,
      wakeup: this.wakeups.named("approvals"),
      waiting: () => {
        const { state } = this.runtime;
        const { tenant, id: place } = state.record;
        return { tenant, place, seq: state.seq, waiting: waitingCalls(state) };
      },
    });
    const { log, ...others } = ports;
    this.runtime = new ConversationRuntime({
      ...others,
      ...mail,
      ...conversationMedia(attachments, () => this.runtime.state.record),
      armWakeup: (milliseconds) => this.wakeups.arm("window", milliseconds),
      announce: (record) => this.announcement.note(record),
      relist: () => this.announcement.listing.note(),
      invite: (record, id) => broughtBy(ports, record, id),
      onUsage: () => this.usage.changed(),
      ...(log && { log }),
      waitingChanged: () => void this.approvals.note().catch((error: unknown) => console.error(error)),
      onWaiting: () => void this.approvals.publish(),
      ...(exporter && { spans: new SpanQueue(clock, exporter, (work) => ports.waitUntil(work)).add }),
      publish: (frames) => {
        if (frames.some(endsTurn)) this.usage.changed();
        this.readers.publish(frames);
      },
    });
    this.opening = new Opening({
      ...ports,
      send: mail.send,
      runtime: this.runtime,
      transaction: (body) => database.transaction(body),
      expel: () => this.readers.expel((principal) => mayRead(this.runtime.state.record, principal)),
    });
    this.queries = new ConversationQueries(this.runtime.store);
    this.readers = new ConversationReaders({
      runtime: this.runtime,
      queries: this.queries,
      outflows: shared.outflows,
      clients,
      onExpiring: (at) => ports.waitUntil(this.expireAt(at)),
      clock,
    });
    this.erasing = new Erasing({
      ...ports,
      runtime: this.runtime,
      wakeup: this.wakeups.named("erasing"),
      listing: this.announcement.listing,
    });
    this.backup = new ConversationBackup({
      ...ports,
      runtime: this.runtime,
      queries: this.queries,
      wakeup: this.wakeups.named("import"),
      announce: (record) => this.announcement.note(record),
      publish: () => this.announcement.listing.publish(),
    });
    this.removal = new ConversationRemoval({
      ...ports,
      send: mail.send,
      runtime: this.runtime,
      wakeup: this.wakeups.named("removal"),
      forgetMail: () => ports.mailbox().forget(),
      expel: () => this.readers.expel(() => false),
    });
  }

  /** Registers the handlers of envelopes from other actors. */
  takeEnvelopes(mailbox: Pick<Mailbox, "receives" | "receivesAfter" | "outcomes">): void {
    const { runtime, opening, ports } = this;
    const { keyValue, ids, database } = ports;
    takeLeaseAnswers(mailbox, () => runtime.begin());
    takeLearnedAnswers(mailbox, runtime);
    takeWorkflowCalls(mailbox, {
      ...{ begin: () => runtime.begin(), state: () => runtime.state, turn: (n) => runtime.turn(n) },
      ...{ hookRuns: runtime.hookRuns, large: runtime.large },
    });
    takeAgentCalls(mailbox, {
      ...{ opening, begin: () => runtime.begin(), turn: (n) => runtime.turn(n), large: runtime.large },
    });
    takeRunInvitations(mailbox, {
      ...{ keyValue, ids, runtime },
      transaction: (body) => database.transaction(body),
      invite: (record, id) => broughtBy(ports, record, id),
      relist: () => this.announcement.listing.note(),
      send: outgoing(() => ports.mailbox()).send,
    });
  }

  /** Forgets what readers have cached of the content, after an erasure. */
  forget(): void {
    this.queries.forget();
    this.readers.forget();
  }

  /** Wakes the actor when the authority of a reader ends. */
  async expireAt(time: number): Promise<void> {
    await this.wakeups.arm("expiry", Math.max(0, time - this.ports.clock.now()));
  }
}
