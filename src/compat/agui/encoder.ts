/**
 * Converts the frames of a turn to the events of a run of AG-UI. Pure. A turn that waits for the client is several runs: each run ends with
 * the wait, and the run with the answers continues the turn.
 *
 * AGUI-1  A run is a pure function of the frames of its turn, of the calls that it answers, and of its reader. It begins with `RUN_STARTED` and
 *         ends with `RUN_FINISHED` or `RUN_ERROR`, each once.
 * AGUI-2  Messages, calls and steps open and close within one run, and steps do not overlap.
 * AGUI-3  A run ends when its turn waits for a person, for the client's tools, or for deferred results. The outcome `interrupt` has the requests
 *         that the reader may answer. Without such requests the outcome is `success`, and it names the calls of the client's tools. The caller
 *         adds the questions of the workflows that wait, from their runs.
 * AGUI-4  The text of a message is a prefix of the model's reply, and in the end all of it. If a repeated model call changes the text, the
 *         message ends, and another message has the new text.
 * AGUI-9  A client older than AG-UI 1.0 gets only members that it accepts: no version, and no outcome other than `interrupt`.
 */
import { type AnsweredBy, mayAnswer } from "../../protocol/approval.ts";
import type { ElicitationView } from "../../protocol/elicitation.ts";
import type { Frame } from "../../protocol/frames.ts";
import type { WireError } from "../../protocol/move-schemas.ts";
import { defined } from "../../shared/defined.ts";
import type { JsonValue } from "../../shared/json.ts";
import type { Principal } from "../../shared/principal.ts";
import { answerForm, approvalText } from "../mcp/questions.ts";
import { type Piece, SentText } from "../sent-text.ts";
import { AGUI_VERSION, type AgUiEvent, type AgUiMessage, type Interrupt, type RunOutcome } from "./events.ts";
import { interruptId } from "./interrupt-id.ts";

export interface RunOptions {
  threadId: string;
  runId: string;
  conversationId: string;
  principal: Principal;
  /** The calls that this run answers, by `operationId`. The run begins after the wait for them. Default: the turn's first run. */
  answered?: readonly string[];
  /** Shows the results of the client's tools too, for a client that has not seen them. */
  withClientResults?: boolean;
  /** The client is older than AG-UI 1.0: it refuses newer members. */
  isOlder?: boolean;
}

/** An open call: it runs, or waits for the client or for a deferred result, or its work waits for a person. */
type CallState = "running" | "client" | "deferred" | "held";

/** A call with a workflow that waits for a person. */
export interface HeldRun {
  turnId: string;
  operationId: string;
  runId: string;
}

interface Ask extends AnsweredBy {
  turnId: string;
  toolCallId: string;
  message: string;
  expiresAt: string;
  elicitation?: ElicitationView;
}

export class RunEncoder {
  #isOver = false;
  #agentId = "agent";
  /** `version` counts the texts of this message (AGUI-4). */
  #message: { id: string; text: SentText; version: number; isOpen: boolean } | null = null;
  #step: string | null = null;
  readonly #open = new Map<string, CallState>();
  readonly #asks = new Map<string, Ask>();
  /** The runs of workflows that wait for a person, by the operation of their call. */
  readonly #held = new Map<string, HeldRun>();
  /** The model's last reply has waited: all its calls are known. */
  #hasWaited = false;
  /** The calls that this run answers, until their answers are read. */
  readonly #awaited: Set<string>;
  /** The events since the last wait; `null` after the beginning of this run. */
  #earlier: AgUiEvent[] | null;

  constructor(private readonly options: RunOptions) {
    this.#awaited = new Set(options.answered);
    this.#earlier = this.#awaited.size > 0 ? [] : null;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** The workflows that wait for a person at the end of this run. */
  get heldRuns(): HeldRun[] {
    return [...this.#held.values()];
  }

  /** Returns the beginning of the run. `messages` replace the messages of the client. */
  start(messages?: AgUiMessage[]): AgUiEvent[] {
    const version = this.options.isOlder === true ? {} : { protocolVersion: AGUI_VERSION };
    const started: AgUiEvent = { type: "RUN_STARTED", ...this.#ids, ...version };
    return messages === undefined ? [started] : [started, { type: "MESSAGES_SNAPSHOT", messages }];
  }

  /** Returns the events of a frame. Give it the frames of one turn, from the first. */
  push(frame: Frame): AgUiEvent[] {
    if (this.#isOver) return [];
    const events = this.#events(frame);
    const isAnswer = closedBy(frame).filter((id) => this.#awaited.delete(id)).length > 0;
    if (this.#earlier === null) return [...events, ...this.#waitsAgain()];
    if (frame.type === "turn.waiting") {
      this.#isOver = false;
      this.#earlier = [];
      return [];
    }
    this.#earlier.push(...events);
    return isAnswer || this.#isOver ? [...this.#begin(), ...this.#waitsAgain()] : [];
  }

  /** Returns the end of a run without a turn, or if its stream is over. Empty if the run has ended. */
  end(): AgUiEvent[] {
    return this.#isOver ? [] : [...this.#begin(), ...this.#finish({ type: "success" })];
  }

  /** Returns the end of a run if its stream breaks. Empty if the run has ended. */
  fail(error: Pick<WireError, "code" | "message">): AgUiEvent[] {
    return this.#isOver ? [] : [...this.#begin(), ...this.#fail(error)];
  }

  get #ids() {
    const { threadId, runId } = this.options;
    return { threadId, runId };
  }

  #events(frame: Frame): AgUiEvent[] {
    const { turnId = "", messageId = "", operationId = "" } = frame;
    switch (frame.type) {
      case "message.started":
        this.#agentId = frame.data.agentId;
        this.#hasWaited = false;
        return this.#ensureStep(messageId);
      case "message.delta": {
        const { offset, text } = frame.data;
        const begun = this.#ensureStep(messageId);
        return [...begun, ...this.#show(this.#message?.text.add(offset, text) ?? "")];
      }
      case "message.reset":
        this.#message?.text.reset();
        return [];
      case "message.completed": {
        const begun = this.#ensureStep(messageId);
        const rest = this.#message?.text.complete(frame.data.content);
        return [...begun, ...this.#show(rest === undefined ? "" : rest), ...this.#closeText()];
      }
      case "tool.requested": {
        const { name, input, client = false } = frame.data;
        this.#open.set(operationId, client ? "client" : "running");
        return this.#call(operationId, name, input);
      }
      case "approval.requested": {
        const { of, ...own } = frame.data;
        const { name, input, expiresAt, rule, requester, elicitation } = of ?? own;
        const agentId = of?.agentId ?? this.#agentId;
        const message = approvalText(agentId, name, input, elicitation);
        const by = defined({ rule, requester, elicitation });
        const asked = { turnId, toolCallId: operationId, message, expiresAt, ...by };
        this.#asks.set(of?.operationId ?? operationId, asked);
        return [];
      }
      case "approval.resolved":
        this.#asks.delete(frame.data.of?.operationId ?? operationId);
        return [];
      case "tool.deferred":
        this.#open.set(operationId, "deferred");
        return [];
      case "work.held": {
        this.#open.set(operationId, "held");
        const { runId } = frame.data;
        if (runId !== undefined) this.#held.set(operationId, { turnId, operationId, runId });
        return [];
      }
      case "work.released":
        this.#open.set(operationId, "running");
        this.#held.delete(operationId);
        return [];
      case "tool.progress": {
        const value = { toolCallId: operationId, progress: frame.data.progress };
        return [{ type: "CUSTOM", name: "tool_progress", value }];
      }
      case "tool.completed":
        return this.#result(operationId, textOf(frame.data.result));
      case "tool.failed":
      case "tool.cancelled": {
        const { code, message } = frame.data.error;
        return this.#result(operationId, JSON.stringify({ error: { code, message } }));
      }
      case "turn.waiting":
        this.#hasWaited = true;
        return this.#finish(this.#outcome());
      case "turn.completed":
        this.#held.clear();
        return this.#finish({ type: "success" }, frame.data.output);
      case "turn.failed": {
        this.#held.clear();
        const { error } = frame.data;
        return error.code === "CANCELLED" ? this.#finish({ type: "cancelled" }) : this.#fail(error);
      }
      default:
        return [];
    }
  }

  /** Ends the run if answers have left only calls that wait. The turn announces a wait once, so it may not announce this. */
  #waitsAgain(): AgUiEvent[] {
    if (this.#isOver || !this.#hasWaited || this.#awaited.size > 0 || this.#open.size === 0) return [];
    const asking = new Set([...this.#asks.values()].map(({ toolCallId }) => toolCallId));
    const runs = [...this.#open].some(([id, state]) => state === "running" && !asking.has(id));
    return runs ? [] : this.#finish(this.#outcome());
  }

  #outcome(): RunOutcome {
    const interrupts = [...this.#asks].flatMap(([operationId, asked]) => this.#interrupt(operationId, asked));
    if (interrupts.length > 0) return { type: "interrupt", interrupts };
    const pending = [...this.#open].flatMap(([id, state]) => (state === "client" ? [id] : []));
    return { type: "success", ...(pending.length > 0 && { pendingToolCallIds: pending }) };
  }

  #interrupt(operationId: string, asked: Ask): Interrupt[] {
    const { conversationId, principal } = this.options;
    if (!mayAnswer(asked, principal, true)) return [];
    const { turnId, toolCallId, message, expiresAt, elicitation } = asked;
    const call = { conversationId, turnId, operationId };
    const id = interruptId({ call, ...defined({ round: elicitation?.round }) });
    const responseSchema = answerForm(elicitation);
    return [{ id, reason: "tool_call", message, toolCallId, responseSchema, expiresAt }];
  }

  /** Begins this run: returns the events since the wait. */
  #begin(): AgUiEvent[] {
    const earlier = this.#earlier ?? [];
    this.#earlier = null;
    return earlier;
  }

  #fail({ message, code }: Pick<WireError, "code" | "message">): AgUiEvent[] {
    this.#isOver = true;
    return [...this.#endStep(), { type: "RUN_ERROR", message, code }];
  }

  #finish(outcome: RunOutcome, result?: JsonValue): AgUiEvent[] {
    this.#isOver = true;
    const shown = this.options.isOlder === true && outcome.type !== "interrupt" ? {} : { outcome };
    return [...this.#endStep(), { type: "RUN_FINISHED", ...this.#ids, ...shown, ...defined({ result }) }];
  }

  #call(toolCallId: string, toolCallName: string, input: unknown): AgUiEvent[] {
    const parentMessageId = this.#message === null ? undefined : shownId(this.#message);
    return [
      { type: "TOOL_CALL_START", toolCallId, toolCallName, ...defined({ parentMessageId }) },
      { type: "TOOL_CALL_ARGS", toolCallId, delta: JSON.stringify(input ?? {}) },
      { type: "TOOL_CALL_END", toolCallId },
    ];
  }

  #result(toolCallId: string, content: string): AgUiEvent[] {
    const isClients = this.#open.get(toolCallId) === "client";
    this.#open.delete(toolCallId);
    this.#held.delete(toolCallId);
    for (const [id, asked] of this.#asks) if (asked.toolCallId === toolCallId) this.#asks.delete(id);
    if (isClients && this.options.withClientResults !== true) return [];
    const messageId = `${toolCallId}_result`;
    return [{ type: "TOOL_CALL_RESULT", messageId, toolCallId, content, role: "tool" }];
  }

  #beginStep(messageId: string): AgUiEvent[] {
    const ended = this.#endStep();
    this.#step = this.#agentId;
    this.#message = { id: messageId, text: new SentText(), version: 1, isOpen: false };
    return [...ended, { type: "STEP_STARTED", stepName: this.#step }];
  }

  #ensureStep(messageId: string): AgUiEvent[] {
    return this.#message?.id === messageId && this.#step !== null ? [] : this.#beginStep(messageId);
  }

  #endStep(): AgUiEvent[] {
    if (this.#step === null) return [];
    const ended: AgUiEvent[] = [...this.#closeText(), { type: "STEP_FINISHED", stepName: this.#step }];
    this.#step = null;
    return ended;
  }

  /** Sends a piece. If the text no longer begins with the sent text, sends the new text as another message. */
  #show(piece: Piece): AgUiEvent[] {
    const message = this.#message;
    if (piece !== null || message === null) return this.#append(piece ?? "");
    const closed = this.#closeText();
    message.version += 1;
    return [...closed, ...this.#append(message.text.restart())];
  }

  #append(delta: string): AgUiEvent[] {
    const message = this.#message;
    if (message === null || delta === "") return [];
    const messageId = shownId(message);
    const begun: AgUiEvent[] = message.isOpen
      ? []
      : [{ type: "TEXT_MESSAGE_START", messageId, role: "assistant" }];
    message.isOpen = true;
    return [...begun, { type: "TEXT_MESSAGE_CONTENT", messageId, delta }];
  }

  #closeText(): AgUiEvent[] {
    const message = this.#message;
    if (message === null || !message.isOpen) return [];
    message.isOpen = false;
    return [{ type: "TEXT_MESSAGE_END", messageId: shownId(message) }];
  }
}

function shownId({ id, version }: { id: string; version: number }): string {
  return version === 1 ? id : `${id}_${version}`;
}

/** Returns the operations that no longer wait for an answer after a frame. */
function closedBy(frame: Frame): string[] {
  const { operationId = "" } = frame;
  switch (frame.type) {
    case "approval.resolved":
      return [frame.data.of?.operationId ?? operationId];
    case "work.released":
    case "tool.completed":
    case "tool.failed":
    case "tool.cancelled":
      return [operationId];
    default:
      return [];
  }
}

function textOf(result: unknown): string {
  return typeof result === "string" ? result : JSON.stringify(result ?? null);
}
