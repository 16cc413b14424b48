/** What the simulated model reads in a request: which message it is to answer, and how far the turn has come. */

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
}

export interface ReadRequest {
  tag: string;
  /** Replies so far, those that were withdrawn included. */
  round: number;
  /** Answers that were withdrawn. */
  withdrawn: number;
  /** Texts of everything before the message, instructions left out. */
  before: string[];
  images: string[];
  /** Images that are said to be no longer there. */
  missing: number;
}

export function readRequest({ messages }: RequestBody): ReadRequest {
  const start = messages.findLastIndex(({ role }) => role === "user");
  const moves = messages.slice(start + 1);
  const isCorrection = (message: RequestMessage | undefined) => message?.role === "system";
  // An answer that was empty is not given back: of it there is only what was wrong.
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
    before: messages.slice(1, start).flatMap((message) => partsOf(message).flatMap(({ text }) => text ?? [])),
    images: parts.flatMap(({ image_url }) => image_url?.url ?? []),
    missing: text.split("is no longer there").length - 1,
  };
}

function partsOf(message: RequestMessage | undefined) {
  const content = message?.content ?? "";
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}
