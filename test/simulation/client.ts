/** The common part of all simulated clients: connect, send the planned messages, leave. */

import type { LiveConversation } from "../../src/client/state.ts";
import type { StartTurn } from "../../src/protocol/requests.ts";
import type { MediaPart } from "../../src/shared/content.ts";
import type { Principal } from "../../src/shared/principal.ts";
import { type Actor, TENANT } from "./actor.ts";
import { Approver } from "./approvals.ts";
import { ClientActs } from "./client-acts.ts";
import { ClientForks } from "./client-forks.ts";
import { ClientToolRunner, toolsOf } from "./client-tool.ts";
import type { WorldClock } from "./clocks.ts";
import type { FaultPlane } from "./faults.ts";
import type { ActRecord, ApprovalRecord, History, SentMessage, Submission } from "./history.ts";
import type { Images } from "./images.ts";
import { OUTPUT, tagOf, words } from "./model-script.ts";
import type { Moments } from "./moments.ts";
import type { ClientPlan, MessagePlan } from "./plan.ts";
import { Requests } from "./requests.ts";

export interface ClientSurroundings {
  actor: Actor;
  conversation: number;
  client: number;
  plan: ClientPlan;
  clock: WorldClock;
  plane: FaultPlane;
  history: History;
  images: Images;
  moments: Moments;
  /** Returns the actor of a fork. */
  fork(number: number): Actor;
  note(conversation: number, text: string): void;
}

/** Delay before a retry, in milliseconds. */
export const RETRY_MS = 1_000;

export abstract class Client {
  protected gone = false;
  protected readonly tools: ClientToolRunner;
  protected readonly approver: Approver;
  protected readonly requests: Requests;
  protected readonly acts: ClientActs;
  readonly #forks: ClientForks;

  constructor(protected readonly world: ClientSurroundings) {
    this.tools = new ClientToolRunner(
      world,
      () => this.gone,
      (submission) => this.submit(submission),
    );
    this.approver = new Approver(
      world,
      () => this.gone,
      (answer) => void this.answer(answer),
    );
    this.requests = new Requests(world);
    this.acts = new ClientActs(world, this.requests, {
      sendsSignals: world.plan.channel === "signals",
      isGone: () => this.gone,
      perform: (act) => this.perform(act),
    });
    this.#forks = new ClientForks(world, this.requests, () => this.gone);
    const { clock, plan } = world;
    clock.timer(plan.joins, () => void this.begin());
    if (plan.leaves !== undefined) clock.timer(plan.joins + plan.leaves, () => this.leave());
  }

  /** The displayed state, if the client displays one. */
  get view(): LiveConversation | null {
    return null;
  }

  protected get principal(): Principal {
    return { subject: this.world.plan.user, tenant: TENANT, roles: ["member"] };
  }

  protected note(text: string): void {
    this.world.note(this.world.conversation, `client ${this.world.client} ${text}`);
  }

  private async begin(): Promise<void> {
    this.arrive();
    this.acts.begin();
    this.#forks.begin();
    for (const [index, message] of this.world.plan.messages.entries()) {
      await this.world.clock.sleep(message.pause);
      if (this.gone) return;
      await this.say(await this.compose(message, index), message);
    }
    await this.finish();
  }

  /** Sends the rest. */
  protected async finish(): Promise<void> {}

  private async compose({ length, images = 0 }: MessagePlan, index: number): Promise<SentMessage> {
    const { conversation, client, plan, clock, history } = this.world;
    const tag = tagOf(conversation, client, index);
    const text = `${tag} ${words(length, index)}`;
    const named: MediaPart[] = [];
    for (let image = 0; image < images; image++) {
      named.push(await this.world.images.upload(conversation, `${tag} ${image}`));
    }
    const sent: SentMessage = {
      conversation,
      client,
      user: plan.user,
      tag,
      content: images === 0 ? text : [{ type: "text", text }, ...named],
      sentAt: clock.elapsed,
      isAnswered: false,
    };
    history.sent.push(sent);
    this.note(`sends ${tag}`);
    return sent;
  }

  /** Options of the message. */
  protected wishes(plan: MessagePlan): Pick<StartTurn, "tools" | "output"> {
    return { ...toolsOf(plan), ...(plan.output === undefined ? {} : { output: OUTPUT }) };
  }

  protected acknowledged(sent: SentMessage, turnId?: string): void {
    if (turnId !== undefined) sent.turnId = turnId;
    if (sent.acknowledgedAt !== undefined) return;
    sent.acknowledgedAt = this.world.clock.elapsed;
    this.note(`knows that ${sent.tag} is recorded`);
  }

  /** Notes the final rejection of a message. Returns `false` if no run should have it. */
  protected refused(sent: SentMessage, code: string): boolean {
    if (code !== "CONVERSATION_CLOSED") return false;
    sent.refused = code;
    this.note(`knows that ${sent.tag} is refused`);
    return true;
  }

  protected leave(): void {
    this.gone = true;
    this.note("leaves");
  }

  /** Stops, resumes or reorders over its own connection. Returns `false` if the act needs a request. */
  protected perform(_act: ActRecord): boolean {
    return false;
  }

  /** Answers a request for approval, over and over until there is a response. */
  protected async answer(record: ApprovalRecord): Promise<void> {
    const { operationId, approved, user: userId } = record;
    while (!this.gone && record.answer === undefined) {
      const taken = await this.requests.send(
        (life) => life.approve(operationId, { approved, caller: { type: "user", userId } }),
        ({ code }) => (record.answer = code),
      );
      if (taken !== undefined) record.answer = "taken";
      if (record.answer === undefined) await this.world.clock.sleep(RETRY_MS);
    }
  }

  protected abstract arrive(): void;
  /** Submits the result of a tool that the client runs. */
  protected abstract submit(submission: Submission): void;
  /** Sends a message. Resolves when the client may continue with the next one. */
  protected abstract say(sent: SentMessage, plan: MessagePlan): Promise<void>;
}
