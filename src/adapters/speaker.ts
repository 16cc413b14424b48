/** Who speaks, for providers whose messages have no names. Pure. */

/** `text` with its speaker before it, as in `Ann: Hello`; without a name the text as it is. */
export function attributed(name: string | undefined, text: string): string {
  const speaker = name?.replace(/\s+/g, " ").trim();
  return speaker ? `${speaker}: ${text}` : text;
}
