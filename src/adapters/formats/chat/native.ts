/**
 * What compatible servers demand back of a reply that called tools: the model's reasoning, under the key under which it
 * came, and what stood beside a call (`extra_content`, where Gemini's signatures are). OpenAI itself sends none of it.
 * A reply without calls is not kept: it ends its loop, and some servers refuse old reasoning. Pure.
 */

import type { ContextMessage, NativePart } from "../../../model/messages.ts";
import type { ModelProfile } from "../../../model/profile.ts";
import { defined } from "../../../shared/defined.ts";
import { isJson, isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { ownParts } from "../common/native.ts";

/** The reasoning of one chunk, by the server's own keys. The first that a reply has is what is given back. */
export interface ChatReasoning {
  reasoning_details?: Json[];
  reasoning_content?: string;
  reasoning?: string;
}

/** Gathers the pieces of one reply. */
export class ChatNative {
  readonly #details: JsonObject[] = [];
  #content = "";
  #reasoning = "";

  add({ reasoning_details: details = [], reasoning_content: content, reasoning }: ChatReasoning): void {
    for (const detail of details) if (isJsonObject(detail) && isJson(detail)) this.#addDetail(detail);
    this.#content += content ?? "";
    this.#reasoning += reasoning ?? "";
  }

  /** The parts of a reply with calls; `undefined` where text and calls say it all. */
  parts(textLength: number, extras: readonly (JsonObject | undefined)[]): NativePart[] | undefined {
    const value = this.#block();
    if (extras.length === 0 || (value === undefined && extras.every((extra) => extra === undefined)))
      return undefined;
    return [
      ...(value === undefined ? [] : [{ type: "block", value } as const]),
      ...(textLength === 0 ? [] : [{ type: "text", length: textLength } as const]),
      ...extras.map((extra, index): NativePart => {
        return { type: "tool-call", index, ...defined({ extra }) };
      }),
    ];
  }

  #block(): JsonObject | undefined {
    if (this.#details.length > 0) return { reasoning_details: this.#details };
    if (this.#content !== "") return { reasoning_content: this.#content.toWellFormed() };
    return this.#reasoning === "" ? undefined : { reasoning: this.#reasoning.toWellFormed() };
  }

  /** A detail comes in pieces too: those of one kind and place that follow each other are one. */
  #addDetail(detail: JsonObject): void {
    const last = this.#details.at(-1);
    const key = detail.type === "reasoning.summary" ? "summary" : "text";
    const piece = detail[key];
    const continues = last !== undefined && last.type === detail.type && last.index === detail.index;
    if (!continues || typeof piece !== "string") {
      this.#details.push({ ...detail });
      return;
    }
    const said = typeof last[key] === "string" ? last[key] : "";
    const known = Object.entries(detail).filter(([, value]) => value !== null);
    Object.assign(last, Object.fromEntries(known), { [key]: said + piece });
  }
}

/** What a message of this profile's own model is sent back with: keys of the message, and of its calls in order. */
export function chatNative(
  message: ContextMessage,
  profile: ModelProfile,
): { message: JsonObject; calls: JsonObject[] } {
  const given: { message: JsonObject; calls: JsonObject[] } = { message: {}, calls: [] };
  for (const part of ownParts(message, profile) ?? []) {
    if (part.type === "block") Object.assign(given.message, reasoningOf(part.value));
    if (part.type === "tool-call") given.calls.push(part.extra);
  }
  return given;
}

function reasoningOf(value: JsonObject): JsonObject {
  const { reasoning_details: details, reasoning_content: content, reasoning } = value;
  if (Array.isArray(details)) return { reasoning_details: details };
  if (typeof content === "string") return { reasoning_content: content };
  return typeof reasoning === "string" ? { reasoning } : {};
}
