/**
 * The output of one response while it is streamed: items by their place, their texts and calls as deltas, and in the
 * end what must go back (RESPONSES-2). A text or a call is reported as its pieces arrive; what the finished item has
 * beyond them is reported then, so that a server which sends no pieces loses nothing. Pure state.
 */

import type { NativePart } from "../../../model/messages.ts";
import type { ModelDelta } from "../../../model/reply.ts";
import { defined } from "../../../shared/defined.ts";
import { isJson, isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { isWaiting } from "./native.ts";

interface Segment {
  place: number;
  part: number;
  text: string;
  isRefusal: boolean;
}

interface Call {
  index: number;
  isNamed: boolean;
  arguments: string;
}

export class ResponsesOutput {
  readonly #items = new Map<number, JsonObject>();
  readonly #segments: Segment[] = [];
  readonly #calls = new Map<number, Call>();
  /** Where the last piece of reasoning stood. */
  #thought: string | undefined;
  readonly #thinking = new Set<number>();

  get hasCalls(): boolean {
    return this.#calls.size > 0;
  }

  /** Whether any item is finished. */
  get hasItems(): boolean {
    return this.#items.size > 0;
  }

  get isWaiting(): boolean {
    return isWaiting([...this.#items.values()]);
  }

  text(place: number, part: number, text: string, isRefusal: boolean): ModelDelta[] {
    if (text === "") return [];
    const last = this.#segments.at(-1);
    if (last?.place === place && last.part === part) last.text += text;
    else this.#segments.push({ place, part, text, isRefusal });
    return [{ type: "text", text }];
  }

  /** `part` says which of an item's texts it is: they are set apart by an empty line. */
  reasoning(place: number, part: string, text: string): ModelDelta[] {
    if (text === "") return [];
    const position = `${place} ${part}`;
    const isNext = this.#thought !== undefined && this.#thought !== position;
    this.#thought = position;
    this.#thinking.add(place);
    return [{ type: "reasoning", text: isNext ? `\n\n${text}` : text }];
  }

  /** A piece of a call's arguments. */
  arguments(place: number, piece: string): ModelDelta[] {
    if (piece === "") return [];
    const call = this.#callAt(place);
    call.arguments += piece;
    return [{ type: "tool-call", index: call.index, arguments: piece }];
  }

  /** An item that begins. Only of a call is something known by then. */
  begin(place: number, item: JsonObject): ModelDelta[] {
    return item.type === "function_call" ? this.#name(place, item) : [];
  }

  /** The arguments of a call in whole. */
  wholeArguments(place: number, whole: Json | undefined): ModelDelta[] {
    const streamed = this.#calls.get(place)?.arguments ?? "";
    return typeof whole === "string" && whole.startsWith(streamed)
      ? this.arguments(place, whole.slice(streamed.length))
      : [];
  }

  /** A finished item. The first one at a place counts. */
  finish(place: number, item: JsonObject): ModelDelta[] {
    if (this.#items.has(place)) return [];
    const known = Object.entries(item).filter(([, value]) => value !== null);
    this.#items.set(place, Object.fromEntries(known));
    switch (item.type) {
      case "message":
        return objects(item.content).flatMap((content, part) => this.#wholeText(place, part, content));
      case "function_call":
        return [...this.#name(place, item), ...this.wholeArguments(place, item.arguments)];
      case "reasoning":
        return this.#thinking.has(place) ? [] : this.#wholeReasoning(place, item);
      default:
        return [];
    }
  }

  /** The parts of the reply; `undefined` where text and calls say it all. */
  native(): NativePart[] | undefined {
    const places = new Set([...this.#items.keys(), ...this.#segments.map(({ place }) => place)]);
    const parts = [...places].sort((one, other) => one - other).flatMap((place) => this.#partsAt(place));
    const saysMore = parts.some(
      (part) =>
        part.type === "block" ||
        part.extra?.phase !== undefined ||
        (part.type === "tool-call" && isSpecial(part.extra)),
    );
    return saysMore && this.#isInOrder(parts) ? parts : undefined;
  }

  #partsAt(place: number): NativePart[] {
    const { type, id, phase, ...rest } = this.#items.get(place) ?? { type: "message" };
    const call = this.#calls.get(place);
    if (call !== undefined) {
      const { call_id: _id, name: _name, arguments: _arguments, ...extra } = rest;
      return [{ type: "tool-call", index: call.index, extra: { ...defined({ id }), ...extra } }];
    }
    if (type !== "message") {
      const value = this.#items.get(place);
      return value !== undefined && isJson(value) ? [{ type: "block", value }] : [];
    }
    const shared = { ...defined({ id, phase }) };
    return this.#segments
      .filter((segment) => segment.place === place)
      .map(({ text, isRefusal }) => {
        return {
          type: "text",
          length: text.length,
          extra: { ...shared, ...(isRefusal ? { refusal: true } : {}) },
        };
      });
  }

  /** Whether texts and calls were reported in the order of the items: else the parts would point to the wrong ones. */
  #isInOrder(parts: readonly NativePart[]): boolean {
    const ascends = this.#segments.every(({ place, part }, n) => {
      const next = this.#segments[n + 1];
      return next === undefined || place < next.place || (place === next.place && part < next.part);
    });
    const calls = parts.flatMap((part) => (part.type === "tool-call" ? [part.index] : []));
    return ascends && calls.length === this.#calls.size && calls.every((index, n) => index === n);
  }

  #wholeText(place: number, part: number, content: JsonObject): ModelDelta[] {
    const isRefusal = content.type === "refusal";
    const whole = isRefusal ? content.refusal : content.text;
    const streamed = this.#segments
      .filter((segment) => segment.place === place && segment.part === part)
      .map(({ text }) => text)
      .join("");
    return typeof whole === "string" && whole.startsWith(streamed)
      ? this.text(place, part, whole.slice(streamed.length), isRefusal)
      : [];
  }

  #wholeReasoning(place: number, { summary, content }: JsonObject): ModelDelta[] {
    const texts = [...objects(summary), ...objects(content)];
    return texts.flatMap(({ text }, part) =>
      typeof text === "string" ? this.reasoning(place, `whole ${part}`, text) : [],
    );
  }

  #name(place: number, { call_id: callId, id, name }: JsonObject): ModelDelta[] {
    const call = this.#callAt(place);
    if (call.isNamed) return [];
    call.isNamed = true;
    const known = typeof callId === "string" && callId !== "" ? callId : id;
    return [
      {
        type: "tool-call",
        index: call.index,
        ...(typeof known === "string" && known !== "" ? { id: known } : {}),
        ...(typeof name === "string" && name !== "" ? { name } : {}),
      },
    ];
  }

  #callAt(place: number): Call {
    const call = this.#calls.get(place) ?? { index: this.#calls.size, isNamed: false, arguments: "" };
    this.#calls.set(place, call);
    return call;
  }
}

/** Whether a call has more than an id of its own and a status. */
function isSpecial(extra: object | undefined): boolean {
  return Object.keys(extra ?? {}).some((key) => key !== "id" && key !== "status");
}

function objects(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
