/** Writes the title of a conversation: the first sentence of its message, without a command and a greeting. */
import { TITLE_INSTRUCTION, titledMessage } from "../../../model/title-request.ts";
import type { OfflineAnswer } from "./answer.ts";
import type { View } from "./view.ts";

const GREETING = /^(?:hello|hi|hey|good (?:morning|evening))\b[^.!?\n]{0,20}?[,.!]+\s*|^!\w+\s+|^please\s+/iu;

export function writeTitle({ persona, text }: View): OfflineAnswer | undefined {
  if (persona !== TITLE_INSTRUCTION) return undefined;
  const message = titledMessage(text)?.trim().replace(GREETING, "");
  if (message === undefined) return undefined;
  const [sentence = ""] = message.split(/(?<=[.!?])\s|\n/u);
  return { kind: "text", text: `${sentence.charAt(0).toUpperCase()}${sentence.slice(1)}` };
}
