/** A client on the published session, over sockets that break. */

import { pendingCalls } from "../../src/client/outbox.ts";
import { isFinalClose } from "../../src/client/reconnect.ts";
import { ConversationSession, type FrameTransport } from "../../src/client/session.ts";
import { type LiveConversation, type PendingResult, pendingApprovals } from "../../src/client/state.ts";
import type { Frame } from "../../src/protocol/frames.ts";
import { ActorLost, type ServerSocket } from "./actor.ts";
import { Client, type ClientSurroundings, RETRY_MS } from "./client.ts";
import type { ActRecord, ApprovalRecord, ConnectionRecord, SentMessage, Submission } from "./history.ts";
import { Link } from "./link.ts";
import type { MessagePlan } from "./plan.ts";
import { PATIENCE_MS } from "./requests.ts";

/** Time after which a silent connection counts as broken, in milliseconds. */
const SILENCE_MS = 60_000;

const FRAMES: Partial<Record<ActRecord["does"], string>> = {
  "stop turn": "turn.cancel",
  stop: "conversation.cancel",
  resume: "conversation.resume",
};

type Item = { type: "open" } | { type: "text"; text: string } | { type: "close"; code: number };

interface Connection {
  record: ConnectionRecord;
  transport: FrameTransport;
  end(): void;
}

export class SocketClient extends Client {
  readonly #session = new ConversationSession({ clock: this.world.clock });
  #connection: Connection | null = null;
  #absent = false;
  /** Ids of rejected messages and results that will be sent again. */
  readonly #retrying = new Set<string>();
  /** Messages that are sent and not known to be recorded. */
  readonly #waiting: SentMessage[] = [];
  readonly #watchers = new Set<() => void>();

  constructor(world: ClientSurroundings) {
    super(world);
    this.#session.subscribe(() => this.#look());
    for (const { at, ms } of world.plan.absences) {
      world.clock.timer(world.plan.joins + at, () => {
        this.#absent = true;
        this.#lost(this.#connection, false);
      });
      world.clock.timer(world.plan.joins + at + ms, () => {
        this.#absent = false;
        void this.#connect();
      });
    }
  }

  override get view(): LiveConversation {
    return this.#session.getSnapshot();
  }

  protected override arrive(): void {
    void this.#connect();
  }

  protected override leave(): void {
    super.leave();
    this.#lost(this.#connection, true);
  }

  protected override submit({ operationId, outcome }: Submission): void {
    this.#session.submitToolResult(operationId, outcome);
  }

  /** Sends a frame while it is connected, and a request otherwise. */
  protected override async answer(record: ApprovalRecord): Promise<void> {
    const { operationId, approved } = record;
    if (this.#connection === null) return super.answer(record);
    const frame = { v: 1, type: "approval.resolve", operationId, approved };
    this.#connection.transport.send(JSON.stringify(frame));
  }

  /** Sends a frame while it is connected. The order of turns has no frame. */
  protected override perform({ does, turnId, reason }: ActRecord): boolean {
    const type = FRAMES[does];
    if (this.#connection === null || type === undefined) return false;
    const stop = does === "resume" ? {} : { reason };
    const frame = { v: 1, type, ...(turnId === undefined ? {} : { turnId }), ...stop };
    this.#connection.transport.send(JSON.stringify(frame));
    return true;
  }

  protected override async say(sent: SentMessage, plan: MessagePlan): Promise<void> {
    const { waitsFor } = plan;
    this.#waiting.push(sent);
    this.#session.send(sent.content, { id: sent.tag, ...this.wishes(plan) });
    if (waitsFor === "nothing") return;
    await this.#until(() => sent.acknowledgedAt !== undefined || sent.refused !== undefined);
    if (waitsFor === "answer" && sent.refused === undefined)
      await this.#until((state) => this.#isAnswered(state, sent));
  }

  #until(condition: (state: LiveConversation) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!condition(this.#session.getSnapshot())) return;
        this.#watchers.delete(look);
        resolve();
      };
      this.#watchers.add(look);
      look();
    });
  }

  #isAnswered(state: LiveConversation, { tag }: SentMessage): boolean {
    const message = state.messages.find(({ clientId }) => clientId === tag);
    const turn = state.turns.find(({ id }) => id === message?.turnId);
    return message === undefined || turn?.status !== "active";
  }

  #look(): void {
    const state = this.#session.getSnapshot();
    for (const sent of [...this.#waiting]) {
      const { tag } = sent;
      const pending = state.pending.find(({ clientId }) => clientId === tag);
      if (pending === undefined) {
        this.#waiting.splice(this.#waiting.indexOf(sent), 1);
        this.acknowledged(sent, state.messages.find(({ clientId }) => clientId === tag)?.turnId);
      } else if (pending.status === "rejected" && !this.#retrying.has(tag)) {
        if (this.refused(sent, pending.error?.code ?? ""))
          this.#waiting.splice(this.#waiting.indexOf(sent), 1);
        else this.#retryLater(tag);
      }
    }
    for (const operation of pendingCalls(state)) this.tools.run(operation);
    for (const { id, input } of pendingApprovals(state)) this.approver.see({ operationId: id, input });
    for (const result of state.results ?? []) this.#giveAgain(result);
    for (const watcher of [...this.#watchers]) watcher();
  }

  #retryLater(tag: string): void {
    this.#retrying.add(tag);
    this.note(`was told that ${tag} was refused`);
    this.world.clock.timer(RETRY_MS, () => {
      this.#retrying.delete(tag);
      if (!this.gone) this.#session.retry(tag);
    });
  }

  /** Resends a temporarily rejected result. A finished call accepts no result. */
  #giveAgain({ operationId, status, refusal, ...outcome }: PendingResult): void {
    if (status !== "rejected" || refusal?.code === "CONFLICT" || this.#retrying.has(operationId)) return;
    this.#retrying.add(operationId);
    this.world.clock.timer(RETRY_MS, () => {
      this.#retrying.delete(operationId);
      if (!this.gone) this.#session.submitToolResult(operationId, outcome);
    });
  }

  async #connect(): Promise<void> {
    const { clock, plan, plane, conversation, client, actor, history } = this.world;
    if (this.gone || this.#absent || this.#connection !== null) return;
    const from = this.#session.resumeFrom();
    const record: ConnectionRecord = { conversation, client, from, frames: [] };
    const shared = { clock, plane, conversation, latency: plan.latency, crash: () => actor.crash() };
    const broken = () => clock.timer(SILENCE_MS, () => this.#lost(connection, false));
    const down = new Link<Item>({
      ...shared,
      port: "socket.down",
      broken,
      deliver: (item) => this.#arrived(connection, item),
    });
    const up = new Link<string>({
      ...shared,
      port: "socket.up",
      broken,
      deliver: (text) => {
        actor.receive(socket, text).catch((error: unknown) => {
          if (!(error instanceof ActorLost)) throw error;
        });
      },
    });
    const socket: ServerSocket = {
      send: (text) => down.send({ type: "text", text }),
      close: (code) => {
        down.end({ type: "close", code });
        actor.disconnect(socket);
      },
      lost: () => down.end({ type: "close", code: 1006 }),
    };
    const connection: Connection = {
      record,
      transport: {
        send: (data) => up.send(data),
        reconnect: () => this.#lost(connection, false),
        close: () => this.#lost(connection, true),
      },
      end: () => {
        up.close();
        down.close();
        clock.timer(plan.latency, () => actor.disconnect(socket));
      },
    };
    this.#connection = connection;
    this.note(`connects${from === null ? "" : ` from ${from}`}`);
    if (!(await this.#handshake())) return void this.#lost(connection, false);
    await clock.sleep(plan.latency);
    if (this.#connection !== connection) return;
    history.connections.push(record);
    down.end({ type: "open" });
    try {
      await actor.connect(socket, this.principal, from);
    } catch (error) {
      if (!(error instanceof ActorLost)) throw error;
      down.end({ type: "close", code: 1006 });
    }
  }

  /** Reports whether the request to connect arrived. */
  async #handshake(): Promise<boolean> {
    const { plane, conversation, clock, actor } = this.world;
    for (const fault of plane.cross(conversation, "socket.open")) {
      plane.fire(fault);
      if (fault.kind === "crash") actor.crash();
      if (fault.kind === "delay") await clock.sleep(fault.ms);
      if (fault.kind === "loss") {
        await clock.sleep(PATIENCE_MS);
        return false;
      }
    }
    return true;
  }

  #arrived(connection: Connection, item: Item): void {
    if (this.#connection !== connection) return;
    switch (item.type) {
      case "open":
        this.#session.opened(connection.transport);
        return;
      case "text": {
        const frame: Frame = JSON.parse(item.text);
        connection.record.frames.push(frame);
        this.#session.received(item.text);
        return;
      }
      case "close":
        this.#lost(connection, isFinalClose(item.code));
        return;
      default:
        item satisfies never;
    }
  }

  #lost(connection: Connection | null, final: boolean): void {
    if (connection === null || this.#connection !== connection) return;
    connection.end();
    this.#connection = null;
    this.#session.closed({ final });
    this.note(final ? "is disconnected for good" : "is disconnected");
    if (final && !this.gone) this.world.history.incidents.push("A client was turned away for good.");
    if (!final) this.world.clock.timer(RETRY_MS, () => void this.#connect());
  }
}
