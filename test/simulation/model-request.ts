/** Parser of requests to the simulated model: the message to answer, and the progress of the turn. */

import { titledMessage } from "../../src/model/title-request.ts";
import { withNotes } from "../support/notes.ts";
import { noticeIn, type PromptMessage, promptMessage } from "./check-requests.ts";
import { tagIn } from "./scope.ts";

export interface RequestBody {
  model: string;
  messages: RequestMessage[];
  tools?: unknown[];
  tool_choice?: string;
  response_format?: unknown;
}

interface RequestMessage {
  role: string;
  content: string | null | { type: string; text?: string; image_url?: { url: string } }[];
  tool_calls?: { function: { name: string } }[];
}

/** The beginning of a request's note on newer messages. */
const NEWER = "Meanwhile the user also said";

/** The beginning of an order to summarise. */
const ORDER = "This is an order of the platform";

/** Returns the messages that a request for a summary is about; `undefined` for all other requests. */
export function readSummaryRequest(body: RequestBody): PromptMessage[] | undefined {
  const messages = withNotes(body.messages);
  const order = messages.at(-1);
  if (order?.role !== "user" || !textIn(order).startsWith(ORDER)) return undefined;
  return messages.slice(1, -1).map(messageIn);
}

/** Returns the message that a request for a title quotes; `undefined` for all other requests. */
export function readTitleRequest({ messages }: RequestBody): string | undefined {
  return titledMessage(textIn(messages.at(-1)));
}

export interface ReadRequest {
  tag: string;
  /** Number of replies so far, including withdrawn replies and replies that a newer message interrupted. */
  round: number;
  /** Number of withdrawn answers. */
  withdrawn: number;
  /** Messages before the turn's own, without instructions. */
  before: PromptMessage[];
  /** Messages after it, without withdrawn answers. */
  moves: PromptMessage[];
  /** Number of cycles that have ended. */
  cycle: number;
  /** The results of background operations, in order. */
  notices: string[];
  /** Prefixes of the newer messages that it contains. */
  newer: string[];
  /** Number of further newer messages that the request only counts. */
  newerLeft: number;
  images: string[];
  /** `true` if any message names an image. */
  hasImages: boolean;
  /** Images that the request reports as missing. */
  missing: number;
}

export function readRequest(body: RequestBody): ReadRequest {
  const messages = withNotes(body.messages);
  const start = messages.findLastIndex(({ role }) => role === "user");
  const moves = messages.slice(start + 1);
  const isAddition = (message: RequestMessage | undefined) =>
    message?.role === "system" && textIn(message).startsWith(NEWER);
  const isNotice = (message: RequestMessage | undefined) =>
    message?.role === "system" && noticeIn(textIn(message)) !== undefined;
  const isCorrection = (message: RequestMessage | undefined) =>
    message?.role === "system" && !isAddition(message) && !isNotice(message);
  // A request contains the complaint about an empty answer, without the answer. After an interrupted reply, it contains
  // only the newer message.
  const replies = moves.filter(
    (message, index) =>
      message.role === "assistant" ||
      isAddition(message) ||
      (isCorrection(message) && moves[index - 1]?.role !== "assistant"),
  );
  const parts = partsOf(messages[start]);
  const text = textIn(messages[start]);
  return {
    tag: text.split(" ")[0] ?? "",
    round: replies.length,
    withdrawn: moves.filter(isCorrection).length,
    before: messages.slice(1, start).map(messageIn),
    moves: moves.filter(({ role, tool_calls }) => role === "tool" || tool_calls !== undefined).map(messageIn),
    cycle: moves.filter(({ role, tool_calls }, index) => {
      return role === "assistant" && tool_calls === undefined && !isCorrection(moves[index + 1]);
    }).length,
    notices: moves.flatMap((message) => (message.role === "system" ? (noticeIn(textIn(message)) ?? []) : [])),
    newer: moves.filter(isAddition).flatMap(newerIn),
    newerLeft: moves.filter(isAddition).reduce((sum, message) => sum + newerLeftIn(message), 0),
    hasImages: messages.some((message) =>
      partsOf(message).some(({ type, text = "" }) => type !== "text" || text.includes("no longer there")),
    ),
    images: parts.flatMap(({ image_url }) => image_url?.url ?? []),
    missing: text.split("is no longer there").length - 1,
  };
}

/** Returns the prefixes of the messages that an addition lists. */
function newerIn(message: RequestMessage): string[] {
  const listed = textIn(message).matchAll(/^- (".*")$/gm);
  return [...listed].map(([, text = '""']) => tagIn(JSON.parse(text)));
}

/** Returns the number of messages that an addition only counts. */
function newerLeftIn(message: RequestMessage): number {
  return Number(/^- \((\d+) earlier messages\)$/m.exec(textIn(message))?.[1] ?? 0);
}

function textIn(message: RequestMessage | undefined): string {
  return partsOf(message)
    .map((part) => part.text ?? "")
    .join(" ");
}

function messageIn(message: RequestMessage): PromptMessage {
  return promptMessage(
    message.role,
    textIn(message),
    (message.tool_calls ?? []).map((call) => call.function.name),
  );
}

function partsOf(message: RequestMessage | undefined) {
  const content = message?.content ?? "";
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
