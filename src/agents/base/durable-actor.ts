/**
 * `DurableActor`: an actor with a mailbox. It is the base of all addressable actors, and the only file that uses the SDK's `Agent` class.
 *
 * AGENT-3  The SDK's own entry points are closed: no sub-agents, no plain requests, and no connection may write the SDK's state.
 * AGENT-4  An actor that is no `SessionAgent` refuses each session method with `FORBIDDEN`, and has no session tables.
 * AGENT-5  Public methods of actors are async functions. The SDK starts an actor before its first call of such a method, so a look-up needs
 *          no request of its own.
 */
import { Agent } from "agents";
import { D1DeadLetters, type DeadLetterWriter } from "../../d1/dead-letters.ts";
import { listsMoveOf } from "../../d1/move-lists.ts";
import { systemClock, systemIds } from "../../ports/system.ts";
import { durableStorage } from "../../ports/workers/durable-storage.ts";
import type { DeadLetterView } from "../../protocol/conversation-schemas.ts";
import type { ActorAddress, Envelope } from "../../protocol/envelope.ts";
import type { Answer, Attempt, DeadLetterApi, MailboxPeer } from "../../protocol/mailbox-api.ts";
import { asDone, asResult, DramatisError, forbidden, type Result } from "../../shared/errors.ts";
import type { Page, PageOptions } from "../../shared/page.ts";
import type { Principal } from "../../shared/principal.ts";
import { checkActorPlace, durableActor, kindOf } from "./lookup/durable-actors.ts";
import { checkOperator } from "./mailbox/dead-letter.ts";
import { Mailbox } from "./mailbox/mailbox.ts";
import { destroyUnused } from "./removal/removal.ts";
import type { Client, ConnectionMemory } from "./sockets/client.ts";
import { StorageRefusal } from "./storage/schema-upgrade.ts";
import { type Wakeup, type WakeupHandler, Wakeups } from "./timers/wakeups.ts";

export const SESSION_METHODS = [
  "createSession",
  "getSession",
  "listSessions",
  "deleteSession",
  "loadEvents",
  "appendEvents",
  "deleteEvents",
  "buildWorkingContext",
  "compactSession",
  "persistWorkingContext",
] as const;

export interface WakeupsOfActor {
  wakeups: Wakeups;
  ownWakeup(name: string, handler: WakeupHandler): Wakeup;
}

/** The work of an actor, which continues after a crash. */
export interface ActorWork {
  /** Resumes the work. Called once, when the actor wakes. */
  wake(): void | Promise<void>;
  /** Resolves when the wake-ups of the work are armed. */
  whenArmed(): Promise<void>;
}

export class DurableActor<Env extends Cloudflare.Env = Cloudflare.Env, State = unknown>
  extends Agent<Env, State>
  implements MailboxPeer, DeadLetterApi
{
  /** The wake-ups of parts that find their work in storage. */
  protected readonly wakeups = new Wakeups("dramatis-wakeups");
  /** Sends envelopes to other actors, and passes incoming envelopes to the handlers of a subclass. */
  protected readonly mailbox: Mailbox;
  /** The error of every entry point while the storage is of a newer release; `null` otherwise. */
  #refusal: StorageRefusal | null = null;

  constructor(ctx: DurableObjectState, env: Env) {
    super(ctx, env);
    this.lifecycle.use(this.wakeups);
    // Functions, because the fields of a subclass exist only after the constructor.
    this.mailbox = new Mailbox({
      ...durableStorage(ctx.storage),
      clock: systemClock,
      arm: this.wakeups.add("mailbox", () => this.mailbox.wake()).arm,
      deliver: (envelope, attempt) => this.#deliver(envelope, attempt),
      checkStorage: () => this.checkStorage(),
      whenArmed: async () => this.work?.whenArmed(),
      self: () => this.mailboxAddress,
      directory: () => this.deadLetterDirectory(),
    });
  }

  /** The platform, for the context of a subclass. */
  protected get platform() {
    return {
      ...durableStorage(this.ctx.storage),
      clock: systemClock,
      ids: systemIds,
      wakeups: this.wakeups,
      ownWakeup: (name: string, handler: WakeupHandler) => this.ownWakeup(name, handler),
      name: () => this.name,
      checkPlace: () => this.checkPlace(),
      clients: () => this.getConnections<ConnectionMemory>(),
      waitUntil: (work: Promise<unknown>) => this.ctx.waitUntil(work),
    };
  }

  /** Adds a wake-up with a job of its own, for a part that does not find its work in storage. */
  protected ownWakeup(name: string, handler: WakeupHandler): Wakeup {
    const wakeups = new Wakeups(`dramatis-${name}`);
    this.lifecycle.use(wakeups);
    return wakeups.add(name, handler);
  }

  /** The work that envelopes and requests start. A subclass with such work overrides this. */
  protected get work(): ActorWork | null {
    return null;
  }

  /** Resolves when an envelope may be delivered. A subclass overrides this if it paces some. */
  protected whenDeliverable(_envelope: Pick<Envelope, "type">): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Returns an envelope as its receiver gets it; `null` if there is no need to deliver it. A subclass overrides this for envelopes whose
   * stored body has no content. A `DramatisError` counts as a refusal.
   */
  protected deliverable(envelope: Envelope): Envelope | null {
    return envelope;
  }

  /** Returns the receiver at an address. A subclass overrides this for receivers that are no actors. */
  protected peerAt(address: ActorAddress): MailboxPeer | Promise<MailboxPeer> {
    return durableActor<MailboxPeer>(this.env, address);
  }

  /**
   * Throws `UNAVAILABLE` while the storage is of a newer release than the code. The mailbox then stays unchanged. A subclass
   * with versioned storage of its own overrides this to check that, too.
   */
  protected checkStorage(): void {
    if (this.#refusal !== null) throw this.#refusal;
  }

  /** Reports whether the start of this life was refused. */
  protected get isRefused(): boolean {
    return this.#refusal !== null;
  }

  /**
   * Resumes the work. If it refuses the storage, the actor lives on, so that its entry points answer with the refusal and its wake-up
   * jobs try again (UPGRADE-4). Other errors are thrown.
   */
  override async onStart(): Promise<void> {
    try {
      await this.work?.wake();
    } catch (error) {
      if (!(error instanceof StorageRefusal)) throw error;
      this.#refusal = error;
      console.error(error);
    }
  }

  /** The kind in this actor's address: the name of its export, by default that of its class, in kebab case. */
  protected get mailboxKind(): string {
    return kindOf(this.constructor.name);
  }

  /** The address of this actor's mailbox; `null` unless its name is `{tenant}:{id}`. */
  protected get mailboxAddress(): ActorAddress | null {
    const split = this.name.lastIndexOf(":");
    if (split < 1) return null;
    return { kind: this.mailboxKind, tenant: this.name.slice(0, split), id: this.name.slice(split + 1) };
  }

  /** Throws `INVALID_INPUT` unless the actor is in the jurisdiction that its id names (PLACE-3). */
  protected checkPlace(): void {
    const address = this.mailboxAddress;
    if (address !== null) checkActorPlace(this.env, address, this.ctx.id.jurisdiction);
  }

  /**
   * Returns the directory that lists this actor's dead letters for their tenant: by default the D1 database bound as `DB`, or `null`
   * without this binding. A subclass overrides this to use another database.
   */
  protected deadLetterDirectory(): DeadLetterWriter | null {
    const lists = listsMoveOf(this.env, systemClock);
    return lists === null ? null : new D1DeadLetters(lists.databases);
  }

  /** Returns the connection of a socket; `undefined` if it is closed or not a socket of the SDK. */
  protected connectionOf(socket: WebSocket): Client | undefined {
    // The SDK tags each socket with its connection's id.
    return this.getConnection<ConnectionMemory>(this.ctx.getTags(socket)[0] ?? "");
  }

  /** As `destroyUnused`. */
  protected destroyUnused(isUsed: () => boolean): Promise<void> {
    return destroyUnused(this.ctx, () => this.destroy(), isUsed);
  }

  /** Takes an envelope from another actor's mailbox. */
  async receive(envelope: Envelope, attempt: Attempt): Promise<Answer> {
    return this.mailbox.receive(envelope, attempt);
  }

  async deadLetters(principal: Principal, options?: PageOptions): Promise<Result<Page<DeadLetterView>>> {
    return asResult(() => {
      checkOperator(principal, this.mailboxAddress, this.name);
      return this.mailbox.deadLetters(options);
    });
  }

  async redeliver(principal: Principal, operationId: string): Promise<Result<null>> {
    return asDone(async () => {
      checkOperator(principal, this.mailboxAddress, this.name);
      await this.mailbox.redeliver(operationId);
    });
  }

  /** Refuses plain requests. */
  override onRequest(_request: Request): Response | Promise<Response> {
    return notFound();
  }

  /** Refuses sub-agents. */
  override async onBeforeSubAgent(): Promise<Response> {
    return notFound();
  }

  /** Keeps clients from writing the SDK's state. */
  override shouldConnectionBeReadonly(): boolean {
    return true;
  }

  async #deliver(envelope: Envelope, attempt: Attempt): Promise<Answer> {
    await this.whenDeliverable(envelope);
    try {
      const peer = await this.peerAt(envelope.to);
      const delivered = this.deliverable(envelope);
      return delivered === null ? { type: "done", result: null } : await peer.receive(delivered, attempt);
    } catch (error) {
      // The actor does not exist, so the envelope was not sent.
      if (error instanceof DramatisError) return { type: "refused", error: error.toData(), recorded: false };
      throw error;
    }
  }

  static {
    // RPC finds a method only on a prototype.
    for (const name of SESSION_METHODS) {
      Object.defineProperty(DurableActor.prototype, name, {
        configurable: true,
        writable: true,
        value(this: DurableActor) {
          const message = `The ${this.mailboxKind} "${this.name}" has no sessions. Call a conversation, or your own subclass of SessionAgent.`;
          throw forbidden(message);
        },
      });
    }
  }
}

function notFound(): Response {
  return new Response("Not found", { status: 404 });
}
