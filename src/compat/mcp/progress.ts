/**
 * The progress of a turn and of a run, as texts for a person who waits. Pure.
 *
 * MCP-3  The texts of a message in all notifications are its text. After a repeated model call that differs, its text starts again.
 */
import type { Frame } from "../../protocol/frames.ts";
import type { RunView } from "../../protocol/run-schemas.ts";
import { SentText } from "../sent-text.ts";

export class TurnProgress {
  #message: { id: string | undefined; text: SentText } | undefined;

  /** Returns the text of a notification; "" for a frame without news. */
  push(frame: Frame): string {
    switch (frame.type) {
      case "turn.queued":
        return `Waits in the queue, at position ${frame.data.position}.`;
      case "message.delta":
        return this.#piece(frame, (text) => text.add(frame.data.offset, frame.data.text));
      case "message.reset":
        return this.#piece(frame, (text) => {
          text.reset();
          return "";
        });
      case "message.completed":
        return this.#piece(frame, (text) => text.complete(frame.data.content));
      case "tool.requested":
        return `Calls ${frame.data.name}.`;
      case "approval.requested":
        return `Waits for approval of ${frame.data.name}.`;
      default:
        return "";
    }
  }

  #piece({ messageId }: Frame, change: (text: SentText) => string | null): string {
    const kept = this.#message?.id === messageId ? this.#message : undefined;
    const message = kept ?? { id: messageId, text: new SentText() };
    this.#message = message;
    return change(message.text) ?? message.text.restart();
  }
}

export function runProgress({ active }: RunView): string {
  const nodes = [...new Set(active.map(({ node }) => node))];
  return nodes.length === 0 ? "Starts." : `Works on ${nodes.join(", ")}.`;
}
