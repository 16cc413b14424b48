/** A client that repeats its request with the same key until it gets a response. */
import type { StartTurn } from "../../src/protocol/conversation-api.ts";
import { DramatisError } from "../../src/shared/errors.ts";
import { ActorLost } from "./actor.ts";
import { Client, PATIENCE_MS, RETRY_MS } from "./client.ts";
import type { SentMessage, Submission } from "./history.ts";
import type { Life } from "./life.ts";
import type { MessagePlan, Port } from "./plan.ts";

const POLL_MS = 1_000;
/** Polling interval for tools to run, in milliseconds. */
const TOOLS_POLL_MS = 5_000;

export class HttpClient extends Client {
  protected override arrive(): void {}

  protected override async say(sent: SentMessage, plan: MessagePlan): Promise<void> {
    const { waitsFor } = plan;
    const wishes = this.wishes(plan);
    const answered = this.#send(sent, wishes);
    if (wishes.tools !== undefined) void answered.then((turnId) => this.#runTools(turnId));
    if (waitsFor === "nothing") return;
    const turnId = await answered;
    while (waitsFor === "answer" && !this.gone) {
      const turn = await this.#request((life) => life.queries.turn(life.runtime.state, turnId));
      if (turn !== undefined && turn.status !== "active") return;
      await this.world.clock.sleep(POLL_MS);
    }
  }

  /** Runs its tools until the turn is over. */
  async #runTools(turnId: string): Promise<void> {
    while (!this.gone) {
      const turn = await this.#request((life) => life.queries.turn(life.runtime.state, turnId));
      if (turn !== undefined && turn.status !== "active") return;
      for (const { toolCall, toolResult } of turn?.moves ?? []) {
        if (toolCall?.client !== true || toolResult !== undefined) continue;
        this.tools.run({ id: toolCall.operationId, input: toolCall.input });
      }
      await this.world.clock.sleep(TOOLS_POLL_MS);
    }
  }

  protected override async submit(submission: Submission): Promise<void> {
    const { operationId, outcome } = submission;
    while (!this.gone && submission.answer === undefined) {
      const taken = await this.#request(
        (life) => life.submit([{ operationId, ...outcome }]),
        ({ code }) => (submission.answer = code),
      );
      if (taken !== undefined) submission.answer = "taken";
      if (submission.answer === undefined) await this.world.clock.sleep(RETRY_MS);
    }
  }

  /** Resolves with the turn; never, if the client leaves before. */
  async #send(sent: SentMessage, wishes: Pick<StartTurn, "tools" | "output">): Promise<string> {
    while (!this.gone) {
      const started = await this.#request((life) =>
        life.runtime.accept({
          type: "conversation.user.message",
          id: sent.tag,
          caller: { type: "user", userId: this.world.plan.user },
          data: { content: sent.content, ...wishes },
        }),
      );
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

  /** Returns `undefined` without a response, or for a retriable one. Calls `onRefused` for a final rejection. */
  async #request<Result>(
    use: (life: Life) => Result | Promise<Result>,
    onRefused = ({ code, message }: DramatisError) => {
      this.world.history.incidents.push(`A request was refused for good: ${code} ${message}`);
    },
  ): Promise<Result | undefined> {
    const { clock } = this.world;
    const answer = this.#exchange(use).catch((error: unknown) => {
      if (error instanceof DramatisError && !error.retriable) onRefused(error);
      return undefined;
    });
    return Promise.race([answer, clock.sleep(PATIENCE_MS).then(() => undefined)]);
  }

  async #exchange<Result>(use: (life: Life) => Result | Promise<Result>): Promise<Result> {
    const { clock, plan, actor } = this.world;
    const copies = await this.#travel("http.request");
    await clock.sleep(plan.latency);
    const answers = Array.from({ length: copies }, () => actor.call(use));
    const answer = await Promise.race(answers);
    await Promise.allSettled(answers);
    await this.#travel("http.answer");
    await clock.sleep(plan.latency);
    return answer;
  }

  /** Returns the number of times that the message arrives. */
  async #travel(port: Port): Promise<number> {
    const { plane, conversation, clock, actor } = this.world;
    let copies = 1;
    for (const fault of plane.cross(conversation, port)) {
      if (fault.kind === "jump") continue;
      plane.fire(fault);
      if (fault.kind === "crash") {
        actor.crash();
        throw new ActorLost();
      }
      if (fault.kind === "loss") return new Promise<never>(() => undefined);
      if (fault.kind === "duplicate") copies = 2;
      if (fault.kind === "delay") await clock.sleep(fault.ms);
    }
    return copies;
  }
}
