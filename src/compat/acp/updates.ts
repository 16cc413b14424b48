/**
 * Converts the frames of a conversation to the updates of a session of ACP. Pure.
 *
 * ACP-3  The updates are a function of the frames, of the agent, and of the sent prompts. Frames of a replay and of a live stream give the same
 *        texts and calls.
 * ACP-4  The chunks of a message are a prefix of the model's reply, and in the end all of it. If a repeated model call changes the text, another
 *        message has the new text.
 * ACP-5  A call begins once. Its last update is `completed` or `failed`.
 * ACP-6  `asks` has the calls that wait for a person, also of called agents at any depth. A request leaves it with its answer, with the end of
 *        its call, and with the end of its turn.
 * ACP-7  A prompt ends when its turn ends, or when its turn waits for work in the background. The later updates follow outside of the prompt.
 */
import type {
  ContentBlock,
  SessionUpdate,
  StopReason,
  ToolCallContent,
  ToolCallStatus,
} from "@agentclientprotocol/sdk";
import type { AskView } from "../../protocol/agent-call.ts";
import type { AnsweredBy } from "../../protocol/approval.ts";
import type { Frame } from "../../protocol/frames.ts";
import type { ApprovalView, WireError } from "../../protocol/move-schemas.ts";
import type { Content } from "../../shared/content.ts";
import { defined } from "../../shared/defined.ts";
import { SentText } from "../sent-text.ts";
import { blocksOf } from "./prompt.ts";
import { diffsOf, kindOf, textContent, titleOf } from "./tool-call.ts";

export interface Ask extends AnsweredBy {
  operationId: string;
  turnId: string;
  title: string;
  name: string;
  /** The input that runs after the approval. */
  input: unknown;
}

/** The end of a prompt. `finished`: the last reply of the model decides about the stop reason. */
export type PromptEnd = { type: "finished" | "waits" | "cancelled" } | { type: "failed"; error: WireError };

interface Message {
  text: SentText;
  /** Counts the texts of the message (ACP-4). */
  version: number;
  agentId: string;
  isShown: boolean;
}

interface Call {
  turnId: string;
  name: string;
  diffs: ToolCallContent[];
  /** The requests of the called agent, and of agents below it. */
  asked: Set<string>;
}

export class SessionEncoder {
  readonly #agentId: string;
  readonly #sent = new Set<string>();
  readonly #messages = new Map<string, Message>();
  readonly #calls = new Map<string, Call>();
  readonly #asks = new Map<string, Ask>();
  readonly #active = new Set<string>();
  readonly #ends = new Map<string, PromptEnd>();

  /** `agentId` is the agent of the session. Messages of other agents begin with their name. */
  constructor(agentId: string) {
    this.#agentId = agentId;
  }

  /** The calls that wait for a person, by their operations (ACP-6). */
  get asks(): ReadonlyMap<string, Ask> {
    return this.#asks;
  }

  /** The turns that are not over. */
  get active(): ReadonlySet<string> {
    return this.#active;
  }

  endOf(turnId: string): PromptEnd | undefined {
    return this.#ends.get(turnId);
  }

  /** Notes the key of a prompt of this session. The editor shows the prompt itself. */
  sent(key: string): void {
    this.#sent.add(key);
  }

  /** Returns the updates of a frame. Give it the frames of the conversation, in order. */
  push(frame: Frame): SessionUpdate[] {
    const { turnId = "", operationId = "" } = frame;
    switch (frame.type) {
      case "conversation.updated": {
        const { title } = frame.data;
        return title === undefined
          ? []
          : [{ sessionUpdate: "session_info_update", title, updatedAt: frame.time }];
      }
      case "turn.started":
        this.#active.add(turnId);
        return [];
      case "turn.waiting":
        if (frame.data.reason === "operations") this.#ends.set(turnId, { type: "waits" });
        return [];
      case "turn.completed":
        return this.#endTurn(turnId, { type: "finished" });
      case "turn.failed": {
        const { error } = frame.data;
        return this.#endTurn(
          turnId,
          error.code === "CANCELLED" ? { type: "cancelled" } : { type: "failed", error },
        );
      }
      case "tool.requested": {
        const { name, input, agent, client } = frame.data;
        this.#calls.set(operationId, { turnId, name, diffs: diffsOf(name, input), asked: new Set() });
        const status = client === true ? "pending" : "in_progress";
        return [begun(operationId, { name, input, title: titleOf(name, input, agent), status })];
      }
      case "tool.progress":
        return this.#change(operationId, { content: [textContent(frame.data.progress)] });
      case "approval.requested": {
        const { of, name, input, rule, requester, elicitation } = frame.data;
        if (of !== undefined) return this.#askOf(turnId, operationId, of);
        const title = titleOf(name, input);
        this.#asks.set(operationId, {
          ...{ operationId, turnId, title, name, input },
          ...defined({ rule, requester, elicitation }),
        });
        return this.#change(operationId, { status: "pending", rawInput: input });
      }
      case "approval.resolved": {
        const { of, ...answer } = frame.data;
        const id = of?.operationId ?? operationId;
        this.#asks.delete(id);
        if (answer.outcome === "approved") return [changed(id, "in_progress")];
        // A call of this conversation fails with the reason in a frame of its own.
        return of === undefined ? [] : this.#denyOf(operationId, id, answer);
      }
      case "tool.completed":
        return this.#endCall(operationId, frame.data.result);
      case "tool.failed":
      case "tool.cancelled":
        return this.#endCall(operationId, undefined, frame.data.error);
      default:
        return this.#message(frame);
    }
  }

  #message(frame: Frame): SessionUpdate[] {
    const { messageId = "" } = frame;
    switch (frame.type) {
      case "message.user": {
        const { content, clientId, agentId } = frame.data;
        if (content === undefined || (clientId !== undefined && this.#sent.has(clientId))) return [];
        return userChunks(messageId, content, agentId);
      }
      case "message.started":
        this.#messageOf(messageId).agentId = frame.data.agentId;
        return [];
      case "message.delta": {
        const { offset, text } = frame.data;
        return this.#show(messageId, this.#messageOf(messageId).text.add(offset, text));
      }
      case "message.reset":
        this.#messageOf(messageId).text.reset();
        return [];
      case "message.completed": {
        const { content, agentId, interim = false } = frame.data;
        const message = this.#messageOf(messageId);
        message.agentId = agentId;
        // Interim text that was not streamed is a thought. Streamed text cannot change its kind.
        const kind = interim && !message.isShown ? "agent_thought_chunk" : "agent_message_chunk";
        const updates = this.#show(messageId, message.text.complete(content), kind);
        this.#messages.delete(messageId);
        return updates;
      }
      default:
        return [];
    }
  }

  #messageOf(id: string): Message {
    const known = this.#messages.get(id);
    if (known !== undefined) return known;
    const message = { text: new SentText(), version: 1, agentId: this.#agentId, isShown: false };
    this.#messages.set(id, message);
    return message;
  }

  /** Sends a piece. `null`: the text no longer begins with the sent text (ACP-4). */
  #show(
    id: string,
    piece: string | null,
    sessionUpdate: "agent_message_chunk" | "agent_thought_chunk" = "agent_message_chunk",
  ): SessionUpdate[] {
    const message = this.#messageOf(id);
    const text = piece ?? message.text.restart();
    if (piece === null) {
      message.version += 1;
      message.isShown = false;
    }
    if (text === "") return [];
    const messageId = message.version === 1 ? id : `${id}_${message.version}`;
    const speaker = message.isShown || message.agentId === this.#agentId ? "" : speakerOf(message.agentId);
    message.isShown = true;
    return [{ sessionUpdate, messageId, content: { type: "text", text: speaker + text } }];
  }

  #change(toolCallId: string, change: Omit<ChangedCall, "sessionUpdate" | "toolCallId">): SessionUpdate[] {
    const known = this.#calls.has(toolCallId);
    return known ? [{ sessionUpdate: "tool_call_update", toolCallId, ...change }] : [];
  }

  #askOf(turnId: string, parent: string, of: AskView): SessionUpdate[] {
    const { operationId, agentId, name, input, rule, requester, elicitation } = of;
    const title = `${agentId}: ${titleOf(name, input)}`;
    this.#asks.set(operationId, {
      ...{ operationId, turnId, title, name, input },
      ...defined({ rule, requester, elicitation }),
    });
    const call = this.#calls.get(parent);
    if (call === undefined || call.asked.has(operationId)) return [];
    call.asked.add(operationId);
    return [begun(operationId, { name, input, title, status: "pending" })];
  }

  #denyOf(
    parent: string,
    toolCallId: string,
    { outcome, reason }: Pick<ApprovalView, "outcome" | "reason">,
  ): SessionUpdate[] {
    this.#calls.get(parent)?.asked.delete(toolCallId);
    const text = `The call was ${outcome}${reason === undefined ? "." : `: ${reason}`}`;
    return [{ ...changed(toolCallId, "failed"), content: [textContent(text)] }];
  }

  #endCall(operationId: string, result: unknown, error?: WireError): SessionUpdate[] {
    const call = this.#calls.get(operationId);
    if (call === undefined) return [];
    this.#calls.delete(operationId);
    this.#asks.delete(operationId);
    for (const id of call.asked) this.#asks.delete(id);
    const { code, message } = error ?? {};
    const status = error === undefined ? "completed" : "failed";
    const shown = error === undefined ? result : `${code}: ${message}`;
    const content =
      error === undefined && call.diffs.length > 0 ? call.diffs : [...call.diffs, textContent(shown)];
    const rawOutput = error === undefined ? (result ?? null) : { error: { code, message } };
    return [
      { sessionUpdate: "tool_call_update", toolCallId: operationId, status, content, rawOutput },
      // The frames do not tell the results of these calls.
      ...[...call.asked].map((id) => changed(id, status)),
    ];
  }

  /** Ends the calls that the turn leaves open, because no frame ends them later. */
  #endTurn(turnId: string, end: PromptEnd): SessionUpdate[] {
    this.#active.delete(turnId);
    this.#ends.set(turnId, end);
    const open = [...this.#calls].filter(([, call]) => call.turnId === turnId);
    const left: WireError = { code: "CANCELLED", message: "The turn has ended.", retriable: false };
    const updates = open.flatMap(([operationId]) => this.#endCall(operationId, undefined, left));
    for (const [id, ask] of this.#asks) if (ask.turnId === turnId) this.#asks.delete(id);
    return updates;
  }
}

type ChangedCall = Extract<SessionUpdate, { sessionUpdate: "tool_call_update" }>;

function begun(
  toolCallId: string,
  call: { name: string; input: unknown; title: string; status: ToolCallStatus },
): SessionUpdate {
  const { name, input, title, status } = call;
  const diffs = diffsOf(name, input);
  return {
    ...{ sessionUpdate: "tool_call", toolCallId, title, name, kind: kindOf(name), status },
    ...{ rawInput: input, ...(diffs.length > 0 && { content: diffs }) },
  };
}

function changed(toolCallId: string, status: ToolCallStatus): ChangedCall {
  return { sessionUpdate: "tool_call_update", toolCallId, status };
}

/** Returns the chunks of a message. The message of an agent that asks begins with the name of the agent. */
function userChunks(messageId: string, content: Content, agentId: string | undefined): SessionUpdate[] {
  const speaker: ContentBlock[] = agentId === undefined ? [] : [{ type: "text", text: speakerOf(agentId) }];
  return [...speaker, ...blocksOf(content)].map((block) => ({
    sessionUpdate: "user_message_chunk",
    messageId,
    content: block,
  }));
}

function speakerOf(agentId: string): string {
  return `**${agentId}:** `;
}

/** Returns the stop reason of a completed turn, by the finish reason of the model's last reply. */
export function stopReasonOf(finishReason: unknown): StopReason {
  if (finishReason === "length") return "max_tokens";
  return finishReason === "content_filter" ? "refusal" : "end_turn";
}
