/**
 * The text of a running turn, shown in the channel while it grows.
 *
 * CHANNEL-7  A text that is not complete after `FIRST_MS` is shown, and replaced at most every `EDIT_MS`. The complete text replaces the preview. A
 *            preview passes no text that waits. A placeholder that fails ends the preview. An error changes no turn and no post. The error of a turn replaces the
 *            preview of a message that has no complete text.
 */
import type { Clock } from "../../ports/clock.ts";
import type { ChannelAdapter } from "../../protocol/channels.ts";
import { type Frame, parseFrame } from "../../protocol/frames.ts";
import type { Json } from "../../shared/json.ts";
import { cut } from "../../shared/text.ts";
import { PLACEHOLDER } from "./core/posts.ts";
import type { Preview } from "./store.ts";

/** Slack allows about one message per second and channel. In milliseconds. */
const EDIT_MS = 1_500;
/** An answer that is complete sooner has no preview. In milliseconds. */
const FIRST_MS = 400;
/** Marks a text that is not complete. */
const GROWS = " …";

export interface PreviewPorts {
  clock: Pick<Clock, "now" | "timer">;
  adapter: Pick<ChannelAdapter, "deliver" | "maxLength"> & Required<Pick<ChannelAdapter, "edit">>;
  surface: Json;
  /** Reports whether the first text of a message may be sent now. */
  mayBegin(): boolean;
  /** Stores the reference of a placeholder. Called before `end` resolves. */
  store(preview: Preview): void;
}

/** Shows the messages of one turn. */
export class TurnPreview {
  /** The message that grows; `null` without such a message. */
  #message: { id: string; text: string; reference?: string } | null = null;
  #complete = new Set<string>();
  #isOver = false;
  #sentAt = Number.NEGATIVE_INFINITY;
  #timer: (() => void) | null = null;
  #sending: Promise<void> | null = null;

  constructor(private readonly ports: PreviewPorts) {}

  /** Reads the frames of the turn, and shows its text. Resolves after the end of the stream. Never throws. */
  async follow(frames: ReadableStream<Uint8Array>): Promise<void> {
    let rest = "";
    try {
      for await (const chunk of frames.pipeThrough(new TextDecoderStream())) {
        const lines = (rest + chunk).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) {
          const frame = parseFrame(line);
          if (frame !== null) this.#push(frame);
        }
      }
    } catch (error) {
      console.warn("The preview of a turn ended.", error);
    }
    this.#stop();
    await this.#sending;
  }

  /** Ends the preview of a message, by default of the message that grows. Resolves after the request that is under way. */
  async end(messageId = this.#message?.id): Promise<void> {
    if (messageId !== undefined) this.#close(messageId);
    await this.#sending;
  }

  stop(): void {
    this.#isOver = true;
    this.#stop();
  }

  #close(messageId: string): void {
    this.#complete.add(messageId);
    if (this.#message?.id === messageId) this.#stop();
  }

  #stop(): void {
    this.#message = null;
    this.#timer?.();
    this.#timer = null;
  }

  #push(frame: Frame): void {
    const { messageId } = frame;
    if (messageId === undefined || this.#isOver || this.#complete.has(messageId)) return;
    if (frame.type === "message.completed") return void this.end(messageId);
    if (frame.type !== "message.delta") return;
    const { offset, text } = frame.data;
    if (this.#message?.id !== messageId) this.#message = { id: messageId, text: "" };
    this.#message.text = this.#message.text.slice(0, offset) + text;
    this.#plan();
  }

  #plan(): void {
    if (this.#timer !== null || this.#sending !== null || this.#message === null) return;
    const { clock } = this.ports;
    const wait = Math.max(
      this.#message.reference === undefined ? FIRST_MS : 0,
      this.#sentAt + EDIT_MS - clock.now(),
    );
    this.#timer = clock.timer(wait, () => {
      this.#timer = null;
      if (this.#message === null || this.#message.text.trim() === "") return;
      this.#sentAt = clock.now();
      if (this.#message.reference === undefined && !this.ports.mayBegin()) return this.#plan();
      const { length } = this.#message.text;
      this.#sending = this.#send(this.#message).finally(() => {
        this.#sending = null;
        if (this.#message !== null && this.#message.text.length > length) this.#plan();
      });
    });
  }

  /** Shows the text. First sends a placeholder and stores its place, so that the answer replaces the text also after a crash. */
  async #send(message: { id: string; text: string; reference?: string }): Promise<void> {
    const { adapter, surface, store } = this.ports;
    const { id: messageId } = message;
    const longest = (adapter.maxLength ?? Number.POSITIVE_INFINITY) - GROWS.length;
    try {
      if (message.reference === undefined) {
        const result = await adapter.deliver(surface, { text: PLACEHOLDER });
        // The post sends the text.
        if (result.status !== "delivered" || result.reference === undefined) return this.#close(messageId);
        message.reference = result.reference;
        store({ messageId, reference: result.reference });
      }
      // The message has ended, or its conversation was deleted.
      if (this.#message !== message) return;
      const text = { text: cut(message.text, longest) + GROWS };
      const result = await adapter.edit(surface, message.reference, text);
      // The message can no longer change. The post begins a new message.
      if (result.status === "failed" && !result.retryable) this.#close(messageId);
    } catch (error) {
      console.warn("A preview was not sent.", error);
      // The place of the placeholder is unknown.
      if (message.reference === undefined) this.#close(messageId);
    }
  }
}
