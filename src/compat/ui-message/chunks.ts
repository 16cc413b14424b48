/**
 * Converts a turn's frames to the UI message stream of the AI SDK. Pure. A turn is one assistant message, and each model call is a step of
 * it.
 *
 * UISTREAM-1  A stream is a pure function of the turn's frames. It begins with `start` and the turn's id as `messageId`. It ends with
 *             `finish`, or with `abort` if the turn was stopped.
 * UISTREAM-5  A stream ends when its turn waits for background work or for deferred results, so the chat is ready for the next message.
 * UISTREAM-6  A call that waits for a person has a request for approval with the id of its operation. A call of an agent below has a
 *             request, too: it is a separate part with the input that would run. A call with an unknown input has no request.
 * UISTREAM-2  Parts open and close within one step, and steps do not overlap.
 * UISTREAM-3  If a repeated call changes the text, `reset-step` withdraws the step. The shown text is always a prefix of the message's
 *             text, and in the end all of it.
 */
import type { Frame } from "../../protocol/frames.ts";
import type { WireError } from "../../protocol/move-schemas.ts";
import { type Piece, SentText } from "../sent-text.ts";

export type UiChunk =
  | { type: "start"; messageId: string }
  | { type: "start-step" | "finish-step" | "reset-step" }
  | { type: "text-start" | "text-end"; id: string }
  | { type: "text-delta"; id: string; delta: string }
  | ({ type: "tool-input-available"; toolName: string; input: unknown } & ToolCall)
  | ({ type: "tool-output-available"; output: unknown; preliminary?: true } & ToolCall)
  | ({ type: "tool-output-error"; errorText: string } & ToolCall)
  | { type: "tool-approval-request"; approvalId: string; toolCallId: string }
  | { type: "tool-output-denied"; toolCallId: string }
  | { type: "data-tool-progress"; data: { toolCallId: string; progress: unknown }; transient: true }
  | { type: "error"; errorText: string }
  | { type: "abort"; reason: string }
  | { type: "finish"; finishReason: "stop" | "error" };

/** The agent runs its own tools, and the page does not declare them. */
interface ToolCall {
  toolCallId: string;
  dynamic: true;
  providerExecuted: true;
}

function callOf(toolCallId: string): ToolCall {
  return { toolCallId, dynamic: true, providerExecuted: true };
}

function approvalOf(operationId: string): UiChunk {
  return { type: "tool-approval-request", approvalId: operationId, toolCallId: operationId };
}

export class UiMessageEncoder {
  #isStarted = false;
  #isInStep = false;
  #isOver = false;
  #message: { id: string; text: SentText; isOpen: boolean } | null = null;
  readonly #shown: Set<string>;

  /** `shown` has the calls that the page shows already, if the stream continues its message. */
  constructor(shown: readonly string[] = []) {
    this.#shown = new Set(shown);
  }

  /** Returns the chunks of a frame. Give it the frames of one turn only. */
  push(frame: Frame): UiChunk[] {
    return [...this.#start(frame.turnId), ...this.#chunks(frame)];
  }

  /** Returns the end of a stream if its turn only waits. Empty if the stream has ended. */
  end(): UiChunk[] {
    return this.#isOver || !this.#isStarted ? [] : this.#finish();
  }

  /** Returns the end of a stream that breaks before its turn ends. */
  fail(error: Pick<WireError, "code" | "message">): UiChunk[] {
    this.#isOver = true;
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
    const call = callOf(operationId);
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
      case "approval.requested": {
        const { of } = frame.data;
        if (of === undefined) return [approvalOf(operationId)];
        if (of.input === undefined) return [];
        this.#shown.add(of.operationId);
        return [
          { type: "tool-input-available", toolName: of.name, input: of.input, ...callOf(of.operationId) },
          approvalOf(of.operationId),
        ];
      }
      case "approval.resolved": {
        const { of, outcome } = frame.data;
        const isApproved = outcome === "approved";
        if (of === undefined) {
          // The chat counts an answer as sent once something follows it; a denial has its error.
          return isApproved
            ? [{ type: "tool-output-available", output: null, preliminary: true, ...call }]
            : [];
        }
        const { operationId: toolCallId } = of;
        if (!this.#shown.has(toolCallId)) return [];
        return isApproved
          ? [{ type: "tool-output-available", output: { approved: true }, ...callOf(toolCallId) }]
          : [{ type: "tool-output-denied", toolCallId }];
      }
      case "tool.progress": {
        const data = { toolCallId: operationId, progress: frame.data.progress };
        return [{ type: "data-tool-progress", data, transient: true }];
      }
      case "tool.completed":
        return [{ type: "tool-output-available", output: frame.data.result, ...call }];
      case "tool.failed":
      case "tool.cancelled":
        return [{ type: "tool-output-error", errorText: frame.data.error.message, ...call }];
      case "turn.completed":
        return this.#finish();
      case "turn.failed": {
        const { error } = frame.data;
        if (error.code !== "CANCELLED") return this.fail(error);
        this.#isOver = true;
        return [...this.#endStep(), { type: "abort", reason: error.message }];
      }
      default:
        return [];
    }
  }

  #finish(): UiChunk[] {
    this.#isOver = true;
    return [...this.#endStep(), { type: "finish", finishReason: "stop" }];
  }

  #beginStep(messageId: string): UiChunk[] {
    const ended = this.#endStep();
    this.#isInStep = true;
    this.#message = { id: messageId, text: new SentText(), isOpen: false };
    return [...ended, { type: "start-step" }];
  }

  /** Begins a step unless the reader has received the start of the message. */
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

  /** Sends a piece. If the text no longer begins with the sent text, resets the step and sends the new text. */
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
