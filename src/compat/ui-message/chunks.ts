/**
 * A turn's frames as the AI SDK's UI message stream. Pure; a turn is one assistant message, and each model call a step of
 * it.
 *
 * UISTREAM-1  A stream is a pure function of the turn's frames: it begins with `start`, whose `messageId` is the turn's
 *             id, and ends with `finish`, however often it is asked for.
 * UISTREAM-2  Parts open and close within one step, and steps do not overlap.
 * UISTREAM-3  Text that is made anew takes its step back with `reset-step`; what is shown is at all times a prefix of
 *             the message's text, and in the end all of it.
 */
import type { Frame } from "../../protocol/frames.ts";
import type { WireError } from "../../protocol/views.ts";
import { type Piece, SentText } from "../sent-text.ts";

/** The chunks that a stream of ours is made of; each is one of the SDK's `UIMessageChunk`. */
export type UiChunk =
  | { type: "start"; messageId: string }
  | { type: "start-step" | "finish-step" | "reset-step" }
  | { type: "text-start" | "text-end"; id: string }
  | { type: "text-delta"; id: string; delta: string }
  | ({ type: "tool-input-available"; toolName: string; input: unknown } & ToolCall)
  | ({ type: "tool-output-available"; output: unknown } & ToolCall)
  | ({ type: "tool-output-error"; errorText: string } & ToolCall)
  | { type: "data-tool-progress"; data: { toolCallId: string; progress: unknown }; transient: true }
  | { type: "error"; errorText: string }
  | { type: "finish"; finishReason: "stop" | "error" };

/** The tools are the agent's own: it runs them, and they are not known to the page. */
interface ToolCall {
  toolCallId: string;
  dynamic: true;
  providerExecuted: true;
}

export class UiMessageEncoder {
  #isStarted = false;
  #isInStep = false;
  #message: { id: string; text: SentText; isOpen: boolean } | null = null;

  /** The chunks that a frame of the turn adds. Other turns' frames must be left out before. */
  push(frame: Frame): UiChunk[] {
    return [...this.#start(frame.turnId), ...this.#chunks(frame)];
  }

  /** The end of a stream that breaks off before its turn does. */
  fail(error: Pick<WireError, "code" | "message">): UiChunk[] {
    return [
      ...this.#endStep(),
      { type: "error", errorText: `${error.message} (${error.code})` },
      { type: "finish", finishReason: "error" },
    ];
  }

  #start(turnId: string | undefined): UiChunk[] {
    if (this.#isStarted || turnId === undefined) return [];
    this.#isStarted = true;
    return [{ type: "start", messageId: turnId }];
  }

  #chunks(frame: Frame): UiChunk[] {
    const { messageId = "", operationId = "" } = frame;
    const call = { toolCallId: operationId, dynamic: true, providerExecuted: true } as const;
    switch (frame.type) {
      case "message.started":
        return this.#beginStep(messageId);
      case "message.delta": {
        const { offset, text } = frame.data;
        const begun = this.#ensureStep(messageId);
        return [...begun, ...this.#show(this.#message?.text.add(offset, text) ?? null)];
      }
      case "message.reset":
        this.#message?.text.reset();
        return [];
      case "message.completed":
        return [...this.#ensureStep(messageId), ...this.#completeText(frame.data.content)];
      case "tool.requested": {
        const { name, input } = frame.data;
        return [{ type: "tool-input-available", toolName: name, input, ...call }];
      }
      case "tool.progress": {
        const data = { toolCallId: operationId, progress: frame.data.progress };
        return [{ type: "data-tool-progress", data, transient: true }];
      }
      case "tool.completed":
        return [{ type: "tool-output-available", output: frame.data.result, ...call }];
      case "tool.failed":
        return [{ type: "tool-output-error", errorText: frame.data.error.message, ...call }];
      case "turn.completed":
        return [...this.#endStep(), { type: "finish", finishReason: "stop" }];
      case "turn.failed":
        return this.fail(frame.data.error);
      default:
        return [];
    }
  }

  #beginStep(messageId: string): UiChunk[] {
    const ended = this.#endStep();
    this.#isInStep = true;
    this.#message = { id: messageId, text: new SentText(), isOpen: false };
    return [...ended, { type: "start-step" }];
  }

  /** A reader that came in between has not seen the message begin. */
  #ensureStep(messageId: string): UiChunk[] {
    return this.#message?.id === messageId ? [] : this.#beginStep(messageId);
  }

  #endStep(): UiChunk[] {
    if (!this.#isInStep) return [];
    this.#isInStep = false;
    return [...this.#closeText(), { type: "finish-step" }];
  }

  #completeText(content: string): UiChunk[] {
    const shown = this.#show(this.#message?.text.complete(content) ?? null);
    return [...shown, ...this.#closeText()];
  }

  /** Shows a piece; where the text came out otherwise, takes the step back and begins with what it is now. */
  #show(piece: Piece): UiChunk[] {
    if (piece !== null || this.#message === null) return this.#append(piece ?? "");
    this.#message.isOpen = false;
    return [{ type: "reset-step" }, ...this.#append(this.#message.text.restart())];
  }

  #append(delta: string): UiChunk[] {
    const message = this.#message;
    if (message === null || delta === "") return [];
    const { id, isOpen } = message;
    message.isOpen = true;
    const begun: UiChunk[] = isOpen ? [] : [{ type: "text-start", id }];
    return [...begun, { type: "text-delta", id, delta }];
  }

  #closeText(): UiChunk[] {
    if (this.#message === null || !this.#message.isOpen) return [];
    this.#message.isOpen = false;
    return [{ type: "text-end", id: this.#message.id }];
  }
}
