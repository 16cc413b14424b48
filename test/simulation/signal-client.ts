/** A client that sends its messages as signals, in batches, and repeats unanswered messages. */
import type { StartTurn } from "../../src/protocol/requests.ts";
import type { SignalEnvelope } from "../../src/protocol/signal-schemas.ts";
import { needsApproval } from "./approvals.ts";
import { RETRY_MS } from "./client.ts";
import type { SentMessage } from "./history.ts";
import { HttpClient } from "./http-client.ts";
import type { MessagePlan } from "./plan.ts";

interface Enclosed {
  sent: SentMessage;
  /** A call waits for the client. */
  serves: boolean;
  wishes: Pick<StartTurn, "tools" | "output">;
}

export class SignalClient extends HttpClient {
  #batch: Enclosed[] = [];

  protected override async say(sent: SentMessage, plan: MessagePlan): Promise<void> {
    const message = this.#enclosed(sent, plan);
    this.#batch.push(message);
    if (plan.waitsFor === "nothing") return;
    await this.finish();
    if (plan.waitsFor !== "answer") return;
    const turnId = await this.#untilStarted(message);
    if (turnId !== undefined) await this.untilOver(turnId);
  }

  protected override async finish(): Promise<void> {
    let left = this.#batch;
    this.#batch = [];
    for (const { sent } of left) sent.batch = left[0]?.sent.tag ?? "";
    while (left.length > 0 && !this.gone) {
      await this.#send(left);
      left = left.filter(({ sent }) => sent.acknowledgedAt === undefined && sent.refused === undefined);
      if (left.length > 0) await this.world.clock.sleep(RETRY_MS);
    }
  }

  async #send(batch: readonly Enclosed[]): Promise<void> {
    const envelopes = batch.map(
      ({ sent: { tag, content }, wishes }): SignalEnvelope => ({
        id: tag,
        type: "conversation.user.message",
        data: { content, ...wishes },
      }),
    );
    const results = await this.requests.send((life) => life.ingress.ingest(this.principal, envelopes));
    if (this.gone) return;
    results?.forEach((result, index) => {
      const message = batch[index];
      if (message === undefined) return;
      const { sent, serves } = message;
      if (!result.ok) {
        // The client resends a signal that a fault rejected.
        if (result.error.retriable || result.error.code === "INTERNAL_ERROR") return;
        if (!this.refused(sent, result.error.code)) this.requests.complain(result.error);
        return;
      }
      const { value } = result;
      sent.isAnswered = true;
      const { acknowledgedAt } = sent;
      if (value.status === "queued") sent.isQueued = true;
      this.acknowledged(sent, "turnId" in value ? value.turnId : undefined);
      if (acknowledgedAt === undefined && serves) void this.#serve(message);
    });
  }

  #enclosed(sent: SentMessage, plan: MessagePlan): Enclosed {
    const wishes = this.wishes(plan);
    return { sent, wishes, serves: wishes.tools !== undefined || needsApproval(plan) };
  }

  /** Runs the client's tools of a message, and answers its requests for approval. */
  async #serve(message: Enclosed): Promise<void> {
    const turnId = await this.#untilStarted(message);
    if (turnId !== undefined) await this.runTools(turnId);
  }

  /** Resends a message until it has a turn. Returns `undefined` if the message is refused or the client leaves. */
  async #untilStarted(message: Enclosed): Promise<string | undefined> {
    const { sent } = message;
    while (!this.gone && sent.refused === undefined && sent.turnId === undefined) {
      await this.world.clock.sleep(RETRY_MS);
      await this.#send([message]);
    }
    return sent.turnId;
  }
}
