/** A client that repeats its request with the same key until it gets a response. */
import type { StartTurn } from "../../src/protocol/requests.ts";
import { needsApproval } from "./approvals.ts";
import { Client, RETRY_MS } from "./client.ts";
import type { SentMessage, Submission } from "./history.ts";
import type { MessagePlan } from "./plan.ts";

const POLL_MS = 1_000;
/** Polling interval for tools to run, in milliseconds. */
const TOOLS_POLL_MS = 5_000;

export class HttpClient extends Client {
  protected override arrive(): void {}

  protected override async say(sent: SentMessage, plan: MessagePlan): Promise<void> {
    const { waitsFor } = plan;
    const wishes = this.wishes(plan);
    const answered = this.#send(sent, wishes);
    if (wishes.tools !== undefined || needsApproval(plan))
      void answered.then((turnId) => (turnId === null ? undefined : this.runTools(turnId)));
    if (waitsFor === "nothing") return;
    const turnId = await answered;
    if (waitsFor === "answer" && turnId !== null) await this.untilOver(turnId);
  }

  /** Resolves when the turn is over. */
  protected async untilOver(turnId: string): Promise<void> {
    while (!this.gone) {
      const turn = await this.requests.send((life) => life.queries.turn(life.runtime.state, turnId));
      if (turn !== undefined && turn.status !== "active") return;
      await this.world.clock.sleep(POLL_MS);
    }
  }

  /** Runs its tools, and answers requests for approval, until the turn is over. */
  protected async runTools(turnId: string): Promise<void> {
    while (!this.gone) {
      const turn = await this.requests.send((life) => life.queries.turn(life.runtime.state, turnId));
      if (turn !== undefined && turn.status !== "active") return;
      for (const { toolCall, toolResult } of turn?.moves ?? []) {
        if (toolCall?.approval !== undefined && toolCall.approval.outcome === undefined)
          this.approver.see(toolCall);
        if (toolCall?.client !== true || toolResult !== undefined) continue;
        this.tools.run({ operationId: toolCall.operationId, input: toolCall.input });
      }
      await this.world.clock.sleep(TOOLS_POLL_MS);
    }
  }

  protected override async submit(submission: Submission): Promise<void> {
    const { operationId, outcome } = submission;
    while (!this.gone && submission.answer === undefined) {
      const taken = await this.requests.send(
        (life) => life.submit([{ operationId, ...outcome }]),
        ({ code }) => (submission.answer = code),
      );
      if (taken !== undefined) submission.answer = "taken";
      if (submission.answer === undefined) await this.world.clock.sleep(RETRY_MS);
    }
  }

  /** Resolves with the turn, `null` if the message was refused; never, if the client leaves before. */
  async #send(sent: SentMessage, wishes: Pick<StartTurn, "tools" | "output">): Promise<string | null> {
    while (!this.gone) {
      const started = await this.requests.send(
        (life) =>
          life.runtime.accept({
            type: "conversation.user.message",
            id: sent.tag,
            caller: { type: "user", userId: this.world.plan.user },
            data: { content: sent.content, ...wishes },
          }),
        (error) => {
          if (!this.refused(sent, error.code)) this.requests.complain(error);
        },
      );
      if (sent.refused !== undefined) return null;
      if (this.gone) break;
      if (started !== undefined) {
        sent.isAnswered = true;
        this.acknowledged(sent, started.turnId);
        return started.turnId;
      }
      await this.world.clock.sleep(RETRY_MS);
    }
    return new Promise<never>(() => undefined);
  }
}
