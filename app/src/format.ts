/** Texts for people from values for programs. Pure. */
import type { AgentIdentity } from "../../src/protocol/agent-api.ts";

/** An agent's name: its persona's, or its id in words. */
export function agentName({ id, persona }: AgentIdentity): string {
  return ("identity" in persona ? persona.name : undefined) ?? wordsOf(id);
}

/** One line about an agent: its persona's description, or where the persona is from. */
export function agentDescription({ persona }: AgentIdentity): string {
  if ("identity" in persona) return persona.description ?? firstSentence(persona.identity.systemPrompt);
  return `${persona.library}/${persona.id}`;
}

/** `travel-guide` as "Travel guide". */
export function wordsOf(id: string): string {
  const words = id.replaceAll(/[-_]+/g, " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A conversation's title from its first message: one line, cut between words. */
export function titleFrom(text: string, limit = 60): string {
  const line = text.trim().split(/\s+/).join(" ");
  if (line.length <= limit) return line;
  const cut = line.slice(0, limit);
  const space = cut.lastIndexOf(" ");
  return `${(space > limit / 2 ? cut.slice(0, space) : cut).trimEnd()}…`;
}

/** A value on one line, for a preview: a single argument stands for itself. */
export function previewOf(value: unknown): string {
  if (typeof value !== "object" || value === null) return value === undefined ? "" : String(value);
  const values: unknown[] = Object.values(value);
  const [only] = values;
  if (values.length === 1 && typeof only !== "object") return String(only);
  return values.length === 0 ? "" : JSON.stringify(value);
}

/** A value as indented JSON; a text as itself. */
export function prettyJson(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");
}

/** What to say about anything that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function firstSentence(text: string): string {
  return titleFrom(/^.*?[.!?](?=\s|$)/s.exec(text.trim())?.[0] ?? text, 120);
}
