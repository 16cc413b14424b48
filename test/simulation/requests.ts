/** Requests of a client to its conversation, over a network that loses, delays and repeats them. */
import { DramatisError, type ErrorData } from "../../src/shared/errors.ts";
import { ActorLost } from "./actor.ts";
import type { ClientSurroundings } from "./client.ts";
import type { Life } from "./life.ts";
import type { Port } from "./plan.ts";

/** Time to wait for a response, in milliseconds. */
export const PATIENCE_MS = 10_000;

export class Requests {
  constructor(private readonly world: ClientSurroundings) {}

  /** Returns `undefined` without a response, or for a retriable one. Calls `onRefused` for a final rejection. */
  async send<Result>(
    use: (life: Life) => Result | Promise<Result>,
    onRefused: (error: DramatisError) => void = (error) => this.complain(error),
  ): Promise<Result | undefined> {
    const { clock } = this.world;
    const answer = this.#exchange(use).catch((error: unknown) => {
      if (error instanceof DramatisError && !error.retriable) onRefused(error);
      return undefined;
    });
    return Promise.race([answer, clock.sleep(PATIENCE_MS).then(() => undefined)]);
  }

  /** Notes a final rejection that no run should have. */
  complain({ code, message }: ErrorData): void {
    this.world.history.incidents.push(`A request was refused for good: ${code} ${message}`);
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
