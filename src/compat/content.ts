/** The content of messages in other protocols, in our form. Pure. */
import type { Content } from "../shared/content.ts";

type ContentPart = Exclude<Content, string>[number];

/** Converts the content of a user's message. A single text part becomes a string. */
export function userContent<Part>(
  content: string | readonly Part[],
  convert: (part: Part) => ContentPart,
): Content {
  if (typeof content === "string") return content;
  const parts = content.map(convert);
  const [first, ...rest] = parts;
  return first?.type === "text" && rest.length === 0 ? first.text : parts;
}

/** Joins the texts of a message by blank lines. */
export function joinedText(content: string | readonly ({ text: string } | { refusal: string })[]): string {
  if (typeof content === "string") return content;
  return content.map((part) => ("text" in part ? part.text : part.refusal)).join("\n\n");
}
