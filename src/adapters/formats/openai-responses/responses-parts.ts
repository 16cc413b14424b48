/**
 * The output of one response: items by their place, with their reported texts and calls. A text or a call is reported as its pieces arrive.
 * The rest is reported with the finished item, so a server without pieces loses no text. Pure state.
 */
import type { NativePart } from "../../../model/messages.ts";
import type { ModelDelta } from "../../../model/reply.ts";
import { defined } from "../../../shared/defined.ts";
import { isJson, type Json, type JsonObject } from "../../../shared/json.ts";
import { filled, objects, stringOf } from "../common/json.ts";
import { isWaiting } from "./native.ts";

/** Text that was reported of one content part. */
interface Passage {
  place: number;
  part: number;
  text: string;
  isRefusal: boolean;
}

interface Call {
  index: number;
  isNamed: boolean;
  /** JSON text that was reported. */
  arguments: string;
}

export class ResponsesReplyParts {
  /** The finished items, unchanged: the API requires some members even if they are `null`. */
  readonly #items = new Map<number, JsonObject>();
  readonly #passages: Passage[] = [];
  readonly #calls = new Map<number, Call>();
  /** Place and part of the last piece of reasoning. */
  #reasoningAt: string | undefined;
  readonly #reasoningPlaces = new Set<number>();

  get hasCalls(): boolean {
    return this.#calls.size > 0;
  }

  get hasItems(): boolean {
    return this.#items.size > 0;
  }

  get isWaiting(): boolean {
    return isWaiting([...this.#items.values()]);
  }

  text(place: number, part: number, text: string, isRefusal: boolean): ModelDelta[] {
    if (text === "") return [];
    const last = this.#passages.at(-1);
    if (last?.place === place && last.part === part) last.text += text;
    else this.#passages.push({ place, part, text, isRefusal });
    return [{ type: "text", text }];
  }

  /** Separates the texts of different parts by an empty line. */
  reasoning(place: number, part: string, text: string): ModelDelta[] {
    if (text === "") return [];
    const position = `${place} ${part}`;
    const isNext = this.#reasoningAt !== undefined && this.#reasoningAt !== position;
    this.#reasoningAt = position;
    this.#reasoningPlaces.add(place);
    return [{ type: "reasoning", text: isNext ? `\n\n${text}` : text }];
  }

  arguments(place: number, piece: string): ModelDelta[] {
    if (piece === "") return [];
    const call = this.#callAt(place);
    call.arguments += piece;
    return [{ type: "tool-call", index: call.index, arguments: piece }];
  }

  wholeArguments(place: number, whole: Json | undefined): ModelDelta[] {
    return this.arguments(place, restOf(whole, this.#calls.get(place)?.arguments ?? ""));
  }

  /** Takes an item that begins. Only a call has known members by then. */
  begin(place: number, item: JsonObject): ModelDelta[] {
    return item.type === "function_call" ? this.#name(place, item) : [];
  }

  /** Adds a finished item. The first item at a place counts. */
  finish(place: number, item: JsonObject): ModelDelta[] {
    if (this.#items.has(place)) return [];
    this.#items.set(place, item);
    switch (item.type) {
      case "message":
        return objects(item.content).flatMap((content, part) => this.#wholeText(place, part, content));
      case "function_call":
        return [...this.#name(place, item), ...this.wholeArguments(place, item.arguments)];
      case "reasoning":
        return this.#reasoningPlaces.has(place) ? [] : this.#wholeReasoning(place, item);
      default:
        return [];
    }
  }

  /** Returns the parts of the reply. Empty if its texts and calls were not reported in the order of the items. */
  parts(): NativePart[] {
    const places = new Set([...this.#items.keys(), ...this.#passages.map(({ place }) => place)]);
    const parts = [...places].sort((one, other) => one - other).flatMap((place) => this.#partsAt(place));
    return this.#isInOrder(parts) ? parts : [];
  }

  #partsAt(place: number): NativePart[] {
    const item = this.#items.get(place);
    const { type, id, phase, ...rest } = item ?? { type: "message" };
    const call = this.#calls.get(place);
    if (call !== undefined) {
      const { call_id: _id, name: _name, arguments: _arguments, ...extra } = rest;
      return [{ type: "tool-call", index: call.index, extra: { ...defined({ id }), ...extra } }];
    }
    if (item !== undefined && type !== "message") return isJson(item) ? [{ type: "block", value: item }] : [];
    return this.#passages
      .filter((passage) => passage.place === place)
      .map(({ text, isRefusal }) => {
        const extra = { ...defined({ id, phase }), ...(isRefusal ? { refusal: true } : {}) };
        return { type: "text", length: text.length, extra };
      });
  }

  /** Parts in another order would point to the wrong texts and calls. */
  #isInOrder(parts: readonly NativePart[]): boolean {
    const ascends = this.#passages.every(({ place, part }, n) => {
      const next = this.#passages[n + 1];
      return next === undefined || place < next.place || (place === next.place && part < next.part);
    });
    const calls = parts.flatMap((part) => (part.type === "tool-call" ? [part.index] : []));
    return ascends && calls.length === this.#calls.size && calls.every((index, n) => index === n);
  }

  #wholeText(place: number, part: number, content: JsonObject): ModelDelta[] {
    const isRefusal = content.type === "refusal";
    const passages = this.#passages.filter((passage) => passage.place === place && passage.part === part);
    const reported = passages.map(({ text }) => text).join("");
    return this.text(place, part, restOf(isRefusal ? content.refusal : content.text, reported), isRefusal);
  }

  #wholeReasoning(place: number, { summary, content }: JsonObject): ModelDelta[] {
    const texts = [...objects(summary), ...objects(content)];
    return texts.flatMap(({ text }, part) => this.reasoning(place, `whole ${part}`, restOf(text, "")));
  }

  #name(place: number, { call_id: callId, id: itemId, name }: JsonObject): ModelDelta[] {
    const call = this.#callAt(place);
    if (call.isNamed) return [];
    call.isNamed = true;
    const id = stringOf(callId) || stringOf(itemId);
    return [{ type: "tool-call", index: call.index, ...filled({ id, name: stringOf(name) }) }];
  }

  #callAt(place: number): Call {
    const call = this.#calls.get(place) ?? { index: this.#calls.size, isNamed: false, arguments: "" };
    this.#calls.set(place, call);
    return call;
  }
}

/** Returns the rest of a text after its reported beginning. Empty if the text begins differently. */
function restOf(whole: Json | undefined, reported: string): string {
  return typeof whole === "string" && whole.startsWith(reported) ? whole.slice(reported.length) : "";
}
