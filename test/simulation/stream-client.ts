/** A client that sends over HTTP and reads the conversation's stream at any speed. */
import { applyFrame } from "../../src/client/reducer.ts";
import { initialState, type LiveConversation, pendingApprovals } from "../../src/client/state.ts";
import { parseFrame } from "../../src/protocol/frames.ts";
import { RETRY_MS } from "./client.ts";
import type { ConnectionRecord } from "./history.ts";
import { HttpClient } from "./http-client.ts";
import type { Life } from "./life.ts";

export class StreamClient extends HttpClient {
  #state: LiveConversation = initialState;

  override get view(): LiveConversation {
    return this.#state;
  }

  protected override arrive(): void {
    void this.#watch();
  }

  async #watch(): Promise<void> {
    const { clock, conversation, client, history } = this.world;
    while (!this.gone) {
      const from = this.#state.seq;
      const record: ConnectionRecord = { conversation, client, from, frames: [] };
      try {
        const opened = await this.world.actor.call((life) => ({ life, stream: this.#open(life, from) }));
        this.note(`reads${from === null ? "" : ` from ${from}`}`);
        history.connections.push(record);
        await this.#read(opened, record);
      } catch {
        // The actor died, and the stream with it.
      }
      this.note("reads no more");
      await clock.sleep(RETRY_MS);
    }
  }

  #open({ followers }: Life, from: number | null): ReadableStream<Uint8Array> {
    return followers.stream({ from: from ?? undefined }, { principal: this.principal, encoding: "ndjson" });
  }

  /** Resolves when the connection ends. */
  async #read(
    { life, stream }: { life: Life; stream: ReadableStream<Uint8Array> },
    record: ConnectionRecord,
  ): Promise<void> {
    const { clock, plan } = this.world;
    const reader = stream.getReader();
    const decoder = new TextDecoder();
    let rest = "";
    life.readers += 1;
    try {
      while (!this.gone) {
        const { done, value } = await Promise.race([reader.read(), life.death]);
        if (done || !(await this.#carried())) return;
        const lines = (rest + decoder.decode(value, { stream: true })).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) this.#take(line, record);
        await clock.sleep(plan.latency);
      }
    } finally {
      life.readers -= 1;
      void reader.cancel().catch(() => undefined);
    }
  }

  #take(line: string, record: ConnectionRecord): void {
    const frame = parseFrame(line);
    if (frame === null) return void this.world.history.incidents.push(`A line that is no frame: ${line}`);
    record.frames.push(frame);
    this.#state = applyFrame(this.#state, frame);
    for (const { id, input } of pendingApprovals(this.#state)) this.approver.see({ operationId: id, input });
  }

  /** Reports whether the data arrived; otherwise the connection is broken. */
  async #carried(): Promise<boolean> {
    const { plane, conversation, clock } = this.world;
    for (const fault of plane.cross(conversation, "stream.read")) {
      plane.fire(fault);
      if (fault.kind === "loss") return false;
      if (fault.kind === "delay") await clock.sleep(fault.ms);
    }
    return !this.gone;
  }
}
