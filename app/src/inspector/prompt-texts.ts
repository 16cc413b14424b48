/** Display texts for the parts of a prompt. Pure. */
import type { TurnPrompt } from "../../../src/client/index.ts";

type PartName = TurnPrompt["parts"][number]["name"];

/** The name of each part, its noun, its content, and the color of its bar. */
export const PARTS: Record<PartName, { text: string; detail: string; bar: string }> = {
  instructions: { text: "Instructions", detail: "The persona and its rules", bar: "bg-accent" },
  tools: { text: "Tools", detail: "Names, descriptions and schemas", bar: "bg-caution" },
  output: { text: "Output", detail: "The schema of the answer", bar: "bg-caution/60" },
  history: { text: "History", detail: "Messages of earlier turns", bar: "bg-muted" },
  notes: { text: "Notes", detail: "Memories, other turns and participants", bar: "bg-accent/60" },
  message: { text: "Message", detail: "The message of the turn", bar: "bg-ink/70" },
  moves: { text: "Moves", detail: "Calls and results of the turn", bar: "bg-muted/50" },
  hook: { text: "Hook", detail: "The request of the context hook", bar: "bg-danger/60" },
};

const MISSING: Record<TurnPrompt["missing"][number], string> = {
  memories: "texts of memories",
  withdrawn: "withdrawn answers",
  hook: "the request of a context hook",
  notes: "notes on other agents, other turns and quoted messages",
  history: "the history as of the call",
  media: "media",
  erased: "erased contents",
};

/** Returns a sentence about parts that are not stored, or that the request has only by name; an empty text if all parts are there. */
export function missingText({ missing }: Pick<TurnPrompt, "missing">): string {
  return missing.length === 0 ? "" : `Left out: ${missing.map((part) => MISSING[part]).join(", ")}.`;
}
