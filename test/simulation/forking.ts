/** The fork, the import and the erasure of a simulated conversation, as the actor's class on the platform connects them. */

import type { EventLogWriter } from "../../src/agents/base/lookup/event-logs.ts";
import type { JournalCopies } from "../../src/agents/conversation/copies/journal-copies.ts";
import { ConversationBackup } from "../../src/agents/conversation/data/backup.ts";
import { Erasing } from "../../src/agents/conversation/data/erasing.ts";
import { ConversationFork } from "../../src/agents/conversation/data/fork.ts";
import { ConversationAccess } from "../../src/agents/conversation/inbound/access.ts";
import type { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { conversationView } from "../../src/agents/conversation/reads/views.ts";
import type { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import { TO_REMOVE } from "../../src/agents/conversation/store/entry-eraser.ts";
import { LogStore } from "../../src/agents/event-log/log-store.ts";
import type { AttachmentStore } from "../../src/attachments/attachment-store.ts";
import type { Clock } from "../../src/ports/clock.ts";
import type { KeyValue } from "../../src/ports/key-value.ts";
import { NodeKeyValue } from "../../src/ports/node/node-key-value.ts";
import type { NodeSqlDatabase } from "../../src/ports/node/node-sql-database.ts";
import type { ActorDatabase } from "../../src/ports/sql-database.ts";
import type { ConversationApi } from "../../src/protocol/conversation-api.ts";
import type { ConversationDataApi, ImportPart } from "../../src/protocol/data-api.ts";
import { asDone, asResult, DramatisError, type Result } from "../../src/shared/errors.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { type Actor, TENANT } from "./actor.ts";
import type { WorldClock } from "./clocks.ts";
import type { FaultPlane } from "./faults.ts";
import type { Life } from "./life.ts";
import type { Caller } from "./model.ts";
import { conversationId } from "./scope.ts";

interface ForkingContext {
  conversation: number;
  runtime: ConversationRuntime;
  queries: ConversationQueries;
  clock: Clock;
  database: ActorDatabase;
  keyValue: KeyValue;
  attachments: AttachmentStore;
  copies: JournalCopies;
  /** Wraps the fork, to plant a defect. */
  wrap(own: Forking["fork"]): Forking["fork"];
  /** Finds the actor of a fork. */
  fork(id: string): ForkActor;
  arm(milliseconds: number): Promise<void>;
}

/** The actor of a fork, as the actor of its source reaches it. */
export type ForkActor = Pick<ConversationApi, "view"> & Pick<ConversationDataApi, "takeFork">;

export class Forking {
  readonly fork: Pick<ConversationFork, "fork">;
  readonly backup: Pick<ConversationBackup, "takeFork" | "wake">;
  readonly erasing: Pick<Erasing, "erase" | "wake">;

  constructor(private readonly parts: ForkingContext) {
    const { conversation, runtime, fork, arm } = parts;
    const wakeup = { arm, disarm: () => undefined };
    const context = {
      ...parts,
      // SAFETY: a fork calls only these members, and an erasure here removes no other conversation.
      conversation: async (_: string, id: string) => fork(id) as ConversationApi,
      access: new ConversationAccess({ name: () => `${TENANT}:${conversationId(conversation)}`, runtime }),
      owner: () => ({ tenant: TENANT, conversationId: conversationId(conversation) }),
      // Lists are not simulated.
      listing: { ...noMail.listing, publish: async () => undefined },
      importedChain: async () => Promise.reject(new Error("Nothing is imported here.")),
    };
    this.fork = parts.wrap(new ConversationFork(context));
    this.backup = new ConversationBackup(context, wakeup);
    this.erasing = new Erasing(context, wakeup);
  }

  /** Handles the wake-up. Returns the delay until the next wake-up, in milliseconds; `null` without work. */
  wake(): number | null {
    const times = [this.backup.wake(), this.erasing.wake()].filter((time) => time !== null);
    return times.length === 0 ? null : Math.min(...times);
  }

  /** Answers the source of this fork. */
  get target(): ForkActor {
    const { runtime, conversation } = this.parts;
    return {
      view: () =>
        asResult(() => {
          if (runtime.exists) return conversationView(runtime.state);
          throw new DramatisError("NOT_FOUND", `There is no conversation ${conversation}.`);
        }),
      takeFork: (part) => asDone(() => this.backup.takeFork(part)),
    };
  }
}

/** Reports whether the data of erased entries is still to be removed. */
export function isErasing(keyValue: KeyValue): boolean {
  return Object.values(TO_REMOVE).some((prefix) => keyValue.list(prefix, 1).length > 0);
}

/** Returns the log of events on a database. */
export function logOn(database: NodeSqlDatabase, clock: Pick<Clock, "now">): EventLogWriter {
  const stores = { database, keyValue: new NodeKeyValue(database) };
  // The index of readers is not simulated.
  const store = new LogStore(
    stores,
    () => clock.now(),
    () => undefined,
  );
  return {
    published: async (_tenant, id) => store.published(id),
    publish: async (_tenant, publication) => store.publish(publication),
    replace: async (_tenant, publication) => store.replace(publication),
    empty: async (_tenant, id) => store.empty(id),
  };
}

const LATENCY_MS = 5;

interface LinkSurroundings {
  clock: WorldClock;
  plane: FaultPlane;
  /** Changes the parts of the fork. */
  forked?(part: ImportPart): ImportPart;
}

/** Returns the actor of a fork as one life of its source sees it. A dead life gets no answer. */
export function forkActor(
  caller: Caller,
  actor: Actor,
  { clock, plane, forked = (part) => part }: LinkSurroundings,
): ForkActor {
  const { conversation } = actor.surroundings;
  const lost = () => new DramatisError("UNAVAILABLE", "The fork does not answer.", { retriable: true });
  const never = () => new Promise<never>(() => undefined);
  const send = async <Value>(use: (life: Life) => Promise<Result<Value>>): Promise<Result<Value>> => {
    for (const fault of plane.cross(conversation, "fork.request")) {
      plane.fire(fault);
      if (fault.kind === "error" || fault.kind === "loss") throw lost();
      if (fault.kind === "delay") await clock.sleep(fault.ms);
      if (fault.kind !== "crash") continue;
      caller.die();
      if (fault.when === "after") void actor.call(use).catch(() => undefined);
      return never();
    }
    await clock.sleep(LATENCY_MS);
    if (!caller.alive) return never();
    const answer = await actor.call(use);
    for (const fault of plane.cross(conversation, "fork.answer")) {
      plane.fire(fault);
      if (fault.kind === "delay") await clock.sleep(fault.ms);
      if (fault.kind === "crash") actor.crash();
      if (fault.kind === "crash" || fault.kind === "loss") throw lost();
    }
    await clock.sleep(LATENCY_MS);
    return caller.alive ? answer : never();
  };
  return {
    view: (principal) => send((life) => life.forking.target.view(principal)),
    takeFork: (part) => send((life) => life.forking.target.takeFork(forked(part))),
  };
}
