/** Who speaks, for providers whose messages have no names. Pure. */
import type { OwnPart } from "./native.ts";

/** `text` with its speaker before it, as in `Ann: Hello`; without a name the text as it is. */
export function attributed(name: string | undefined, text: string): string {
  const speaker = name?.replace(/\s+/g, " ").trim();
  return speaker ? `${speaker}: ${text}` : text;
}

/** The parts of a reply with its speaker before the first text that says something. */
export function attributedParts(name: string | undefined, parts: readonly OwnPart[]): OwnPart[] {
  const first = parts.findIndex((part) => part.type === "text" && part.text.trim() !== "");
  return parts.map((part, index) => {
    return index === first && part.type === "text" ? { ...part, text: attributed(name, part.text) } : part;
  });
}
