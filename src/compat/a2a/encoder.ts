/**
 * Converts the frames of a turn to the events of a stream of A2A. Pure.
 *
 * A2A-4  A stream ends with the final status of its task, or with a status that needs input. A stream that follows to the end has each
 *        status that needs input once, and continues.
 * A2A-5  Pieces of a reply are appended to its artifact. If a repeated model call changes the text, the new text replaces the artifact.
 */
import { type AnsweredBy, mayAnswer } from "../../protocol/approval.ts";
import type { Frame } from "../../protocol/frames.ts";
import { defined } from "../../shared/defined.ts";
import type { Principal } from "../../shared/principal.ts";
import type { Question } from "../mcp/questions.ts";
import { type Piece, SentText } from "../sent-text.ts";
import { askingStatus, failedStatus, replyArtifact, type TurnPlace, taskIds } from "./tasks.ts";
import type { StreamEvent, TaskStatus } from "./wire.ts";

/** The frames that may begin a wait. */
const WAITS: ReadonlySet<string> = new Set(["turn.waiting", "approval.requested", "approval.resolved"]);

export class TaskEncoder {
  #isOver = false;
  #hasWaited = false;
  /** The requests of the newest status that needs input. */
  #asked = "";
  #replies = 0;
  /** `number` counts the replies with text. It is 0 before the first text. */
  #reply: { id: string; text: SentText; number: number } | null = null;
  /** The requests for approval without an answer, and their calls. */
  readonly #asks = new Map<string, AnsweredBy & { callId: string }>();

  constructor(
    private readonly place: TurnPlace,
    /** The reader of the stream. */
    private readonly principal: Principal,
    /** The stream follows to the end of its task. */
    private readonly isToEnd = false,
  ) {}

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Reports whether the turn may wait after a frame. The frame may be of the past: read the turn, and call `ask`. */
  mayWait({ type }: Frame): boolean {
    return this.#hasWaited && !this.#isOver && WAITS.has(type);
  }

  /** Returns the events of a frame. Give it the frames of one turn, from the first. */
  push(frame: Frame): StreamEvent[] {
    if (this.#isOver) return [];
    const { messageId = "", operationId = "", time } = frame;
    switch (frame.type) {
      case "message.started":
        this.#hasWaited = false;
        return [];
      case "message.delta": {
        const { offset, text } = frame.data;
        return this.#show(this.#textOf(messageId).add(offset, text), false);
      }
      case "message.reset":
        this.#textOf(messageId).reset();
        return [];
      case "message.completed":
        return this.#show(this.#textOf(messageId).complete(frame.data.content), true);
      case "approval.requested": {
        const { of, ...own } = frame.data;
        const { rule, requester } = of ?? own;
        // A call may ask another question.
        this.#asked = "";
        this.#asks.set(of?.operationId ?? operationId, {
          callId: operationId,
          ...defined({ rule, requester }),
        });
        return [];
      }
      case "approval.resolved":
        this.#asks.delete(frame.data.of?.operationId ?? operationId);
        return [];
      case "tool.completed":
      case "tool.failed":
      case "tool.cancelled":
        for (const [id, { callId }] of this.#asks) if (callId === operationId) this.#asks.delete(id);
        return [];
      case "turn.waiting":
        this.#hasWaited = true;
        return [];
      case "turn.completed":
        return this.#end({ state: "TASK_STATE_COMPLETED", timestamp: time });
      case "turn.failed":
        return this.#end(failedStatus(this.place, frame.data.error, time));
      default:
        return [];
    }
  }

  /** Shows the turn's open questions if they are the requests that the frames have shown. */
  ask(questions: readonly Question[], now: string): StreamEvent[] {
    const open = new Set(this.#open());
    const isSame =
      questions.length === open.size && questions.every(({ place }) => open.has(place.operationId));
    if (open.size === 0 || !isSame) return [];
    const status = askingStatus(this.place, questions, now);
    if (!this.isToEnd) return this.#end(status);
    const asked = [...open].toSorted().join();
    if (asked === this.#asked) return [];
    this.#asked = asked;
    return [{ statusUpdate: { ...taskIds(this.place), status } }];
  }

  #open(): string[] {
    return [...this.#asks].flatMap(([id, asked]) => (mayAnswer(asked, this.principal, true) ? [id] : []));
  }

  #end(status: TaskStatus): StreamEvent[] {
    this.#isOver = true;
    return [{ statusUpdate: { ...taskIds(this.place), status } }];
  }

  #textOf(id: string): SentText {
    if (this.#reply?.id !== id) this.#reply = { id, text: new SentText(), number: 0 };
    return this.#reply.text;
  }

  #show(piece: Piece, lastChunk: boolean): StreamEvent[] {
    const reply = this.#reply;
    if (reply === null) return [];
    const text = piece ?? reply.text.restart();
    const isNew = reply.number === 0;
    if (text === "" && (isNew || (piece !== null && !lastChunk))) return [];
    if (isNew && text.trim() === "") return [];
    if (isNew) {
      this.#replies += 1;
      reply.number = this.#replies;
    }
    const artifact = replyArtifact(reply.number, text);
    const append = !isNew && piece !== null;
    return [{ artifactUpdate: { ...taskIds(this.place), artifact, append, lastChunk } }];
  }
}
