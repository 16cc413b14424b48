/** Parser of requests to the simulated model: the message to answer, and the progress of the turn. */

import { type Said, said } from "./check-requests.ts";

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

export interface ReadRequest {
  tag: string;
  /** Number of replies so far, including withdrawn ones. */
  round: number;
  /** Number of withdrawn answers. */
  withdrawn: number;
  /** Messages before the turn's own, without instructions. */
  before: Said[];
  /** Messages after it, without withdrawn answers. */
  moves: Said[];
  images: string[];
  /** Images that the request reports as missing. */
  missing: number;
}

export function readRequest({ messages }: RequestBody): ReadRequest {
  const start = messages.findLastIndex(({ role }) => role === "user");
  const moves = messages.slice(start + 1);
  const isCorrection = (message: RequestMessage | undefined) => message?.role === "system";
  // An empty answer is not sent back; only the complaint about it is.
  const replies = moves.filter(
    (message, index) =>
      message.role === "assistant" || (isCorrection(message) && moves[index - 1]?.role !== "assistant"),
  );
  const parts = partsOf(messages[start]);
  const text = parts.map((part) => part.text ?? "").join(" ");
  return {
    tag: text.split(" ")[0] ?? "",
    round: replies.length,
    withdrawn: moves.filter(isCorrection).length,
    before: messages.slice(1, start).map(saidIn),
    moves: moves.filter(({ role, tool_calls }) => role === "tool" || tool_calls !== undefined).map(saidIn),
    images: parts.flatMap(({ image_url }) => image_url?.url ?? []),
    missing: text.split("is no longer there").length - 1,
  };
}

function saidIn(message: RequestMessage): Said {
  const text = partsOf(message).map((part) => part.text ?? "");
  return said(
    message.role,
    text.join(" "),
    (message.tool_calls ?? []).map((call) => call.function.name),
  );
}

function partsOf(message: RequestMessage | undefined) {
  const content = message?.content ?? "";
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
