/** A program that asks again, under the same key, until it is answered. */
import { DramatisError } from "../../src/shared/errors.ts";
import { ActorLost } from "./actor.ts";
import { Client, PATIENCE_MS, RETRY_MS } from "./client.ts";
import type { SentMessage } from "./history.ts";
import type { Life } from "./life.ts";
import type { MessagePlan, Port } from "./plan.ts";

const POLL_MS = 1_000;

export class HttpClient extends Client {
  protected override arrive(): void {}

  protected override async say(sent: SentMessage, { waitsFor }: MessagePlan): Promise<void> {
    const answered = this.#send(sent);
    if (waitsFor === "nothing") return;
    const turnId = await answered;
    while (waitsFor === "answer" && !this.gone) {
      const turn = await this.#request((life) => life.queries.turn(life.runtime.state, turnId));
      if (turn !== undefined && turn.status !== "active") return;
      await this.world.clock.sleep(POLL_MS);
    }
  }

  /** Resolves with the turn; never, if the client goes before. */
  async #send(sent: SentMessage): Promise<string> {
    while (!this.gone) {
      const started = await this.#request((life) =>
        life.runtime.accept({
          type: "conversation.user.message",
          id: sent.tag,
          caller: { type: "user", userId: this.world.plan.user },
          data: { content: sent.content },
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

  /** `undefined` if there was no answer, or one that says to come again. */
  async #request<Result>(use: (life: Life) => Result | Promise<Result>): Promise<Result | undefined> {
    const { clock } = this.world;
    const answer = this.#exchange(use).catch((error: unknown) => {
      if (error instanceof DramatisError && !error.retriable) {
        this.world.history.incidents.push(`A request was refused for good: ${error.code} ${error.message}`);
      }
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

  /** Answers how often the message arrives. */
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
