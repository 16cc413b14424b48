/**
 * Keeps reasoning that compatible servers require back with a reply that called tools, under its original key. Also keeps members of a call
 * (`extra_content` with Gemini's signatures). OpenAI itself sends no such data. Reasoning of a reply without calls is dropped: the reply
 * ends its turn, and some servers refuse old reasoning. Pure.
 */
import type { ContextMessage, NativePart } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import { isJson, isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { nativeParts } from "../common/native.ts";

/** The reasoning of one chunk, by the server's own keys. The first key in a reply is sent back. */
export interface ChatReasoning {
  reasoning_details?: Json[] | null | undefined;
  reasoning_content?: string | null | undefined;
  reasoning?: string | null | undefined;
}

/** Gathers the reasoning of one reply. */
export class ReasoningRecord {
  readonly #details: JsonObject[] = [];
  #content = "";
  #reasoning = "";

  add({ reasoning_details: details, reasoning_content: content, reasoning }: ChatReasoning): void {
    for (const detail of details ?? []) if (isJsonObject(detail) && isJson(detail)) this.#addDetail(detail);
    this.#content += content ?? "";
    this.#reasoning += reasoning ?? "";
  }

  /** Returns the parts of a reply. `extras` has the additional members of each call. */
  parts(textLength: number, extras: readonly (JsonObject | undefined)[]): NativePart[] {
    if (extras.length === 0) return [];
    const value = this.#block();
    return [
      ...(value === undefined ? [] : [{ type: "block", value } as const]),
      ...(textLength === 0 ? [] : [{ type: "text", length: textLength } as const]),
      ...extras.map((extra, index) => ({ type: "tool-call", index, ...defined({ extra }) }) as const),
    ];
  }

  #block(): JsonObject | undefined {
    if (this.#details.length > 0) return { reasoning_details: this.#details };
    if (this.#content !== "") return { reasoning_content: this.#content.toWellFormed() };
    return this.#reasoning === "" ? undefined : { reasoning: this.#reasoning.toWellFormed() };
  }

  /** Details come in pieces: neighbours of one type and index are one detail. */
  #addDetail(detail: JsonObject): void {
    const last = this.#details.at(-1);
    const key = detail.type === "reasoning.summary" ? "summary" : "text";
    const piece = detail[key];
    const continues = last !== undefined && last.type === detail.type && last.index === detail.index;
    if (!continues || typeof piece !== "string") {
      this.#details.push({ ...detail });
      return;
    }
    const before = typeof last[key] === "string" ? last[key] : "";
    const known = Object.entries(detail).filter(([, value]) => value !== null);
    Object.assign(last, Object.fromEntries(known), { [key]: before + piece });
  }
}

/** Returns the members that are sent back with a message to its own model, and the members of its calls in order. */
export function nativeReasoning(
  message: ContextMessage,
  profile: ModelProfile,
): { message: JsonObject; calls: JsonObject[] } {
  const parts = nativeParts(message, profile) ?? [];
  const blocks = parts.map((part) => (part.type === "block" ? reasoningOf(part.value) : {}));
  return {
    message: Object.assign({}, ...blocks),
    calls: parts.flatMap((part) => (part.type === "tool-call" ? [part.extra] : [])),
  };
}

function reasoningOf(value: JsonObject): JsonObject {
  const { reasoning_details: details, reasoning_content: content, reasoning } = value;
  if (Array.isArray(details)) return { reasoning_details: details };
  if (typeof content === "string") return { reasoning_content: content };
  return typeof reasoning === "string" ? { reasoning } : {};
}
