/** One life of a simulated actor: a runtime on the Node adapters, with faults at every port. */

import type { Connection } from "agents";
import { adapterFor } from "../../src/adapters/formats/lookup.ts";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import type { EventLogWriter } from "../../src/agents/base/lookup/event-logs.ts";
import type { ConnectionMemory } from "../../src/agents/base/sockets/client.ts";
import { createOutflows } from "../../src/agents/base/sockets/outflow.ts";
import type { ConversationMedia } from "../../src/agents/conversation/context.ts";
import { effectsOf } from "../../src/agents/conversation/core/effects.ts";
import type { ConversationIdentity } from "../../src/agents/conversation/core/state.ts";
import type { ConnectionContext } from "../../src/agents/conversation/inbound/connections.ts";
import { Ingress } from "../../src/agents/conversation/inbound/ingress.ts";
import { ConversationReaders } from "../../src/agents/conversation/inbound/readers.ts";
import { Replacing } from "../../src/agents/conversation/inbound/replacing.ts";
import { Stops } from "../../src/agents/conversation/inbound/stops.ts";
import { ConversationQueries } from "../../src/agents/conversation/reads/queries.ts";
import { ConversationRuntime } from "../../src/agents/conversation/runtime.ts";
import type { AttachmentStore } from "../../src/attachments/attachment-store.ts";
import type { SessionEvent } from "../../src/memory/session/session-event.ts";
import { allowAll } from "../../src/policy/gate.ts";
import type { Ids } from "../../src/ports/ids.ts";
import type { KeyValue } from "../../src/ports/key-value.ts";
import type { ActorDatabase } from "../../src/ports/sql-database.ts";
import type { Budget } from "../../src/protocol/budget.ts";
import type { TurnOrder } from "../../src/protocol/conversation-schemas.ts";
import type { ImportPart } from "../../src/protocol/data-api.ts";
import type { TaskExecutor, ToolInvocation } from "../../src/protocol/executor-api.ts";
import { defined } from "../../src/shared/defined.ts";
import { noMail } from "../../src/testing/world/no-mail.ts";
import { APPROVAL_TIMEOUT_MS } from "./approvals.ts";
import { CLIENT_TOOL_TIMEOUT_MS } from "./client-tool.ts";
import { MortalClock, type WorldClock } from "./clocks.ts";
import { Crash, type FaultPlane, InjectedError } from "./faults.ts";
import { type ForkActor, Forking, isErasing } from "./forking.ts";
import { type History, nextStep, type PromptRecord } from "./history.ts";
import type { Caller } from "./model.ts";
import type { Moments } from "./moments.ts";
import type { Port } from "./plan.ts";
import { promptsOf } from "./prompts.ts";
import { Publications } from "./publications.ts";
import { tagIn, tagOfActive } from "./scope.ts";
import type { PublishedDirectory } from "./usage-directory.ts";

/** Ports that a variant of the world may wrap, to plant defects. */
export interface Variant {
  database?(database: ActorDatabase): ActorDatabase;
  keyValue?(keyValue: KeyValue): KeyValue;
  executor?(executor: TaskExecutor): TaskExecutor;
  /** Wraps the arming of the wake-up. */
  window?(open: (milliseconds: number) => void): (milliseconds: number) => void;
  publish?(publish: Publish): Publish;
  /** Wraps the provider's `fetch`. */
  fetch?(fetch: Fetch): Fetch;
  directory?(directory: PublishedDirectory): PublishedDirectory;
  submit?(submit: Submit): Submit;
  approve?(approve: Approve): Approve;
  ingress?(ingress: SignalDoor): SignalDoor;
  replacing?(replacing: Replaces): Replaces;
  forks?(forks: Forks): Forks;
  /** Changes the calls that a conversation sends to its executor. */
  dispatched?(calls: ToolInvocation[], conversation: number): ToolInvocation[];
  /** Wraps the log of events of a fork. */
  log?(log: EventLogWriter): EventLogWriter;
  /** Changes the parts of a fork. */
  forked?(part: ImportPart): ImportPart;
  /** Replaces the conversation in which a client takes a fork up. */
  place?(fork: number): number;
  /** Replaces the order of turns that a conversation begins with. */
  order?(order: TurnOrder): TurnOrder;
}
type Forks = Forking["fork"];
type Fetch = (url: string, init: RequestInit) => Promise<Response>;
type Replaces = Pick<Replacing, "regenerate" | "edit">;
type SignalDoor = Pick<Ingress, "ingest">;
type Submit = ConversationRuntime["results"]["submit"];
type Approve = ConversationRuntime["results"]["approve"];
type Publish = ConstructorParameters<typeof ConversationRuntime>[0]["publish"];

export interface ActorSurroundings {
  /** `null` for a fork, before it gets its record. */
  record: ConversationIdentity | null;
  conversation: number;
  clock: WorldClock;
  plane: FaultPlane;
  ids: Ids;
  fetch(caller: Caller): Fetch;
  media(caller: Caller): ConversationMedia;
  attachments(caller: Caller): AttachmentStore;
  directory(caller: Caller): PublishedDirectory;
  /** The log of events; `null` without a log. */
  log: EventLogWriter | null;
  /** Finds the actor of a fork. */
  fork(caller: Caller, id: string): ForkActor;
  /** Seeded history. */
  history: readonly SessionEvent[];
  executor(caller: Caller): TaskExecutor;
  records: History;
  moments: Moments;
  /** The order of turns that overlap, at first. */
  order: TurnOrder;
  /** The budget of the conversation. */
  budget?: Budget;
  note(conversation: number, text: string): void;
  variant: Variant;
}

/** The parts that outlast a life. */
export interface LifeHost {
  readonly surroundings: ActorSurroundings;
  readonly database: ActorDatabase;
  readonly keyValue: KeyValue;
  /** Number of lives so far. */
  readonly lives: number;
  connections(): Iterable<Connection<ConnectionMemory>>;
  /** Arms the wake-up in the open transaction. */
  arm(milliseconds: number): void;
  disarm(): void;
  /** Notes the newest commit. */
  onCommit(): void;
  onDeath(): void;
}

/** One life of an actor. All of its ports fail once it ends. */
export class Life implements Caller {
  readonly conversation: number;
  readonly life: number;
  readonly clock: MortalClock;
  readonly runtime: ConversationRuntime;
  readonly queries: ConversationQueries;
  readonly ports: ConnectionContext;
  readonly stops: Stops;
  readonly replacing: Replaces;
  readonly ingress: SignalDoor;
  readonly submit: Submit;
  readonly approve: Approve;
  readonly forking: Forking;
  readonly #publications: Publications;
  readonly followers: ConversationReaders;
  /** Number of open streams, which keep the actor in memory. */
  readers = 0;
  /** Rejects when the life ends. */
  readonly death: Promise<never>;
  #alive = true;
  #reject: (error: unknown) => void = () => undefined;

  constructor(private readonly actor: LifeHost) {
    const { clock, conversation } = actor.surroundings;
    this.conversation = conversation;
    this.life = actor.lives;
    this.clock = new MortalClock(clock);
    this.death = new Promise<never>((_, reject) => (this.#reject = reject));
    this.death.catch(() => undefined);
    const ports = this.#runtimePorts();
    this.runtime = new ConversationRuntime(ports);
    const arm = (milliseconds: number) => this.#arm(milliseconds);
    this.#publications = new Publications(this.runtime, this.#copies(), this.clock, {
      arm,
      disarm: () => this.alive && !isErasing(actor.keyValue) && this.actor.disarm(),
    });
    const approve: Approve = (...answer) => this.#takeApproval(answer);
    this.approve = actor.surroundings.variant.approve?.(approve) ?? approve;
    const submit: Submit = (results) => this.runtime.results.submit(results);
    this.submit = actor.surroundings.variant.submit?.(submit) ?? submit;
    this.queries = new ConversationQueries(this.runtime.store);
    const { attachments, fork } = actor.surroundings;
    this.forking = new Forking({
      ...{ conversation, clock: this.clock, runtime: this.runtime, queries: this.queries },
      ...{ database: ports.database, keyValue: ports.keyValue, attachments: attachments(this) },
      ...{ copies: this.#publications.copies, fork: (id) => fork(this, id), arm },
      wrap: actor.surroundings.variant.forks ?? ((own) => own),
    });
    this.followers = new ConversationReaders(
      {
        runtime: this.runtime,
        queries: this.queries,
        clock: this.clock,
        clients: () => actor.connections(),
        // Authority never expires here.
        expireAt: async () => undefined,
        waitUntil: () => undefined,
      },
      createOutflows(),
    );
    this.stops = new Stops({
      runtime: this.runtime,
      queries: this.queries,
      access: { stateFor: () => this.runtime.state, checkSpeaker: () => undefined },
    });
    const { runtime } = this;
    const replacing = new Replacing({
      runtime,
      queries: this.queries,
      access: {
        checkSpeaker: () => undefined,
        get state() {
          return runtime.state;
        },
      },
    });
    this.replacing = actor.surroundings.variant.replacing?.(replacing) ?? replacing;
    this.ports = this.#connectionPorts();
    const { ids, variant } = actor.surroundings;
    const ingress = new Ingress({
      runtime: this.runtime,
      stops: this.stops,
      access: { checkSpeaker: () => undefined },
      ...{ ids, clock: this.clock },
    });
    this.ingress = variant.ingress?.(ingress) ?? ingress;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Continues with the sockets and the turns of the life before. */
  async wake(): Promise<void> {
    if (this.runtime.exists) this.followers.sockets.restore(this.runtime.state.seq);
    await this.runtime.wake();
  }

  tagOfActive(tag: string): string {
    return tagOfActive(this.runtime.state.active.values(), tag);
  }

  promptsOf(tag: string): PromptRecord[] {
    const turn = [...this.runtime.state.active.values()].find(({ input }) => tagIn(input) === tag);
    return turn === undefined ? [] : promptsOf(this.runtime, turn);
  }

  die(): void {
    if (!this.#alive) return;
    this.leave();
    this.actor.onDeath();
    this.#reject(new Crash());
  }

  /** Reports whether this life has work that is not in the database. */
  get isAtWork(): boolean {
    if (!this.isThere) return this.clock.pending > 0;
    return effectsOf(this.runtime.state).length > 0 || this.clock.pending > 0 || this.readers > 0;
  }

  /** `false` for a fork that does not exist yet. */
  get isThere(): boolean {
    return this.actor.surroundings.record !== null || this.runtime.exists;
  }

  /** Handles the wake-up. Returns the delay until the next wake-up, in milliseconds. */
  wakeUp(): number | null {
    if (this.actor.surroundings.record !== null) return this.#window();
    const times = [this.isThere ? this.#window() : null, this.forking.wake()].filter((time) => time !== null);
    return times.length === 0 ? null : Math.min(...times);
  }

  #window(): number | null {
    this.runtime.reconcile();
    return this.#publications.wake();
  }

  /** Ends the life without closing its sockets. */
  leave(): void {
    this.#alive = false;
    this.clock.die();
  }

  async #takeApproval(answer: Parameters<Approve>): Promise<Awaited<ReturnType<Approve>>> {
    const { plane } = this.actor.surroundings;
    const faults = plane.cross(this.conversation, "approval");
    const strike = (when: "before" | "after") => {
      const crash = faults.find((fault) => fault.kind === "crash" && fault.when === when);
      if (crash === undefined) return;
      plane.fire(crash);
      this.die();
      throw new Crash();
    };
    strike("before");
    for (const fault of faults) {
      if (fault.kind !== "delay") continue;
      plane.fire(fault);
      await this.clock.sleep(fault.ms);
    }
    const taken = await this.runtime.results.approve(...answer);
    for (const fault of faults) {
      if (fault.kind !== "duplicate") continue;
      plane.fire(fault);
      await this.runtime.results.approve(...answer);
    }
    strike("after");
    return taken;
  }

  #runtimePorts(): ConstructorParameters<typeof ConversationRuntime>[0] {
    const { variant, ids, fetch, media, executor, moments } = this.actor.surroundings;
    const publish: Publish = (frames) =>
      this.cross("publish", () => {
        this.#publications.changed(frames);
        for (const { type } of frames) {
          if (type === "turn.queued") moments.note(this.conversation, "queued");
          if (type === "turn.waiting") moments.note(this.conversation, "waiting");
          if (type === "turn.completed" || type === "turn.failed") moments.note(this.conversation, "over");
        }
        this.followers.publish(frames);
      });
    const reach = fetch(this);
    const database = this.#database();
    const keyValue = this.#keyValue();
    const tools = executor(this);
    return {
      database: variant.database?.(database) ?? database,
      keyValue: variant.keyValue?.(keyValue) ?? keyValue,
      clock: this.clock,
      ids,
      gateway: createModelGateway({
        secret: () => undefined,
        clock: this.clock,
        fetch: variant.fetch?.(reach) ?? reach,
      }),
      adapters: adapterFor,
      executor: this.#dispatching(variant.executor?.(tools) ?? tools),
      gate: allowAll,
      media: media(this),
      clientToolTimeoutMs: CLIENT_TOOL_TIMEOUT_MS,
      approvalTimeoutMs: APPROVAL_TIMEOUT_MS,
      ...noMail,
      titles: () =>
        this.runtime.state.record.agents[0].chain.titleProfile === undefined ? "none" : "message",
      onUsage: () => this.#publications.usage.changed(),
      onCommit: () => {
        if (this.actor.surroundings.log !== null) this.#publications.copies.events.changed();
      },
      armWakeup: (milliseconds) => this.#arm(milliseconds),
      armCopies: (dueIn) => this.#publications.copies.armInCommit(dueIn),
      publish: variant.publish?.(publish) ?? publish,
    };
  }

  #dispatching(executor: TaskExecutor): TaskExecutor {
    const { records, clock, variant } = this.actor.surroundings;
    return {
      run: (planned, caller) => {
        const calls = variant.dispatched?.(planned, this.conversation) ?? planned;
        const operationIds = calls.map(({ operationId }) => operationId);
        const { conversation } = this;
        const now = () => ({ step: nextStep(records), at: clock.elapsed });
        if (this.alive) records.dispatches.push({ conversation, operationIds, ...now() });
        return executor.run(calls, caller);
      },
    };
  }

  #copies(): { directory: PublishedDirectory; log: EventLogWriter | null } {
    const { variant, directory, log } = this.actor.surroundings;
    const own = directory(this);
    return {
      directory: variant.directory?.(own) ?? own,
      log: log === null ? null : (variant.log?.(log) ?? log),
    };
  }

  async #arm(milliseconds: number): Promise<void> {
    const open = (time: number) => this.cross("window.open", () => this.actor.arm(time));
    const arm = this.actor.surroundings.variant.window?.(open) ?? open;
    arm(milliseconds);
  }

  /** Crosses a port of this life. */
  cross<Result>(port: Port, operation: () => Result): Result {
    if (!this.#alive) throw new Crash();
    const { plane } = this.actor.surroundings;
    let dies: (() => never) | undefined;
    for (const fault of plane.cross(this.conversation, port)) {
      if (fault.kind !== "crash" && fault.kind !== "error") continue;
      const strike = () => {
        plane.fire(fault);
        if (fault.kind === "error") throw new InjectedError("disk full");
        this.die();
        throw new Crash();
      };
      if (fault.kind === "error" || fault.when === "before") strike();
      dies = strike;
    }
    const result = operation();
    dies?.();
    return result;
  }

  #database(): ActorDatabase {
    const { database } = this.actor;
    return {
      run: (statement, ...values) => this.cross("sql.run", () => database.run(statement, ...values)),
      all: (statement, ...values) => this.cross("sql.all", () => database.all(statement, ...values)),
      each: (statement, ...values) => this.cross("sql.each", () => database.each(statement, ...values)),
      transaction: (body) =>
        this.cross("sql.transaction", () => {
          const committed = database.transaction(() => {
            const result = body();
            this.cross("sql.commit", () => undefined);
            return result;
          });
          if (!database.isInTransaction()) this.actor.onCommit();
          return committed;
        }),
      isInTransaction: () => database.isInTransaction(),
    };
  }

  #keyValue(): KeyValue {
    const { keyValue } = this.actor;
    return {
      get: (key) => this.cross("kv.get", () => keyValue.get(key)),
      put: (key, value) => this.cross("kv.put", () => keyValue.put(key, value)),
      delete: (key) => keyValue.delete(key),
      list: (prefix, limit) => keyValue.list(prefix, limit),
    };
  }

  /** Same values as in the actor's class on the platform. */
  #connectionPorts(): ConnectionContext {
    const { runtime, clock, followers } = this;
    return {
      cursor: (_principal, start) => followers.cursor(start),
      readers: followers.sockets,
      connections: () => [...this.actor.connections()].length,
      clock,
      startTurn: ({ subject: userId }, { idempotencyKey: id, ...data }) =>
        runtime.accept({
          type: "conversation.user.message",
          ...(id === undefined ? {} : { id }),
          caller: { type: "user", userId },
          data,
        }),
      // Clients of the simulation answer their calls without a claim.
      claims: { claim: () => false },
      stops: this.stops,
      approve: async ({ subject: userId }, { operationId, approved, reason }) => {
        const caller = { type: "user", userId } as const;
        await this.approve(operationId, { approved, caller, ...defined({ reason }) });
      },
      submitResult: async (_principal, { v: _v, type: _type, ...result }) => {
        await this.submit([result]);
      },
    };
  }
}
