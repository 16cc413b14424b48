/** Frames for people: a line per event, and the text of an answer as it streams. */
import type { Frame } from "../protocol/frames.ts";
import { clean, count, dollars, questionText, short } from "./text.ts";

function inline(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

/** Returns the event of a frame of a conversation in a few words, or `undefined` for a frame that shows no event. */
function eventOf(frame: Frame, conversationId: string): string | undefined {
  switch (frame.type) {
    case "snapshot": {
      const { conversation, turns } = frame.data;
      const active = turns.filter(({ status }) => status === "active").length;
      return `${conversation.title ?? conversation.agentId}: ${conversation.status}, ${count(active, "active turn")}`;
    }
    case "conversation.updated":
      return `conversation ${inline(frame.data)}`;
    case "participant.joined":
    case "participant.left":
      return `${frame.type} ${frame.data.participant.id}`;
    case "turn.started":
      return `turn started ${frame.turnId ?? ""} ${frame.data.agentId}`;
    case "turn.queued":
      return `turn queued at position ${frame.data.position}`;
    case "turn.waiting":
      return `turn waits for ${frame.data.reason}`;
    case "turn.completed":
      return `turn completed${frame.data.spent ? `, ${dollars(frame.data.spent.usd)}` : ""}`;
    case "turn.failed":
      return `turn FAILED ${frame.data.error.code}: ${frame.data.error.message}`;
    case "budget.exceeded":
      return `budget exceeded ${inline(frame.data)}`;
    case "message.user":
      return frame.data.content === undefined ? undefined : `user: ${inline(frame.data.content)}`;
    case "message.reset":
      return `answer restarts: ${frame.data.reason}`;
    case "message.completed":
      return frame.data.content === "" ? undefined : `${frame.data.agentId}: ${frame.data.content}`;
    case "tool.requested":
      return `tool ${frame.data.name} ${inline(frame.data.input)}`;
    case "tool.completed":
      return `tool completed ${inline(frame.data.result)}`;
    case "tool.failed":
    case "tool.cancelled":
      return `${frame.type.replace(".", " ")} ${frame.data.error.code}: ${frame.data.error.message}`;
    case "tool.deferred":
      return `tool waits for its result until ${frame.data.expiresAt}`;
    case "approval.requested":
      return `approval of ${frame.data.name}: dramatis approve ${conversationId} ${frame.operationId ?? ""}${questionText((frame.data.of ?? frame.data).elicitation)}`;
    case "approval.resolved":
      return `approval ${frame.data.outcome}`;
    case "entry.erased":
      return "content erased";
    case "error":
      return `error ${frame.data.code}: ${frame.data.message}`;
    default:
      return undefined;
  }
}

/** Returns the line of a frame, with its time, or `undefined` for a frame that shows no event. */
export function frameLine(frame: Frame, conversationId: string, width: number): string | undefined {
  const event = eventOf(frame, conversationId);
  return event === undefined ? undefined : short(`${frame.time.slice(11, 19)}  ${event}`, width);
}

/** Turns the frames of a turn into the text of its answer, and into lines about its work. */
export class AnswerPrinter {
  /** The shown text of the present message. */
  #shown = "";
  readonly #conversationId: string;

  constructor(conversationId: string) {
    this.#conversationId = conversationId;
  }

  print(frame: Frame): { text: string; line?: string } {
    switch (frame.type) {
      case "message.delta": {
        const known = this.#shown.length - frame.data.offset;
        const added = known < 0 ? "" : frame.data.text.slice(known);
        this.#shown += added;
        return { text: clean(added) };
      }
      case "message.completed": {
        const { content } = frame.data;
        const rest = content.startsWith(this.#shown) ? content.slice(this.#shown.length) : `\n${content}`;
        this.#shown = "";
        return { text: content === "" ? "" : `${clean(rest)}\n` };
      }
      case "message.reset": {
        const text = this.#shown === "" ? "" : "\n";
        this.#shown = "";
        return { text, line: `[${eventOf(frame, this.#conversationId)}]` };
      }
      case "tool.requested":
      case "tool.failed":
      case "approval.requested":
      case "turn.queued":
      case "turn.waiting":
      case "tool.deferred":
        return { text: "", line: `[${short(eventOf(frame, this.#conversationId) ?? "", 200)}]` };
      default:
        return { text: "" };
    }
  }
}
