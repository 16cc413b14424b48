/** What a reply of an AI SDK model was made of, to be given back to it (AISDK-2). Pure state. */
import type { NativePart } from "../../../model/messages.ts";
import { isJson, isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";

interface Passage {
  kind: "text" | "reasoning";
  text: string;
  options?: JsonObject;
}

type Piece =
  | Passage
  | { kind: "call"; index: number; options?: JsonObject }
  | { kind: "block"; value: JsonObject };

export class AiSdkReply {
  readonly #pieces: Piece[] = [];
  /** Passages by kind and id: the parts of several may come by turns. */
  readonly #open = new Map<string, Passage>();
  #calls = 0;
  #isWaiting = false;
  /** The passage to which text was last added; one that is added to later again points to the wrong text. */
  #lastText: Passage | undefined;
  #isMixed = false;

  get calls(): number {
    return this.#calls;
  }

  /** Whether a call waits for someone's approval. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** A passage begins. An id may be used again once its passage has ended. */
  begin(kind: Passage["kind"], id: string, metadata: Json | undefined): void {
    const passage: Passage = { kind, text: "" };
    this.#open.set(`${kind} ${id}`, passage);
    this.#pieces.push(passage);
    annotate(passage, metadata);
  }

  /** More of a passage: its text, or metadata that adds to what is known. */
  add(kind: Passage["kind"], id: string, metadata: Json | undefined, text = ""): void {
    const key = `${kind} ${id}`;
    if (!this.#open.has(key)) this.begin(kind, id, undefined);
    const passage = this.#open.get(key);
    if (passage === undefined) return;
    if (kind === "text" && text !== "" && this.#lastText !== passage) {
      this.#isMixed ||= passage.text !== "" || this.#isBehind(passage);
      this.#lastText = passage;
    }
    passage.text += text;
    annotate(passage, metadata);
  }

  /** A call of ours; the index under which it is reported. */
  addCall(metadata: Json | undefined): number {
    const index = this.#calls++;
    this.#pieces.push({ kind: "call", index, ...(isJsonObject(metadata) ? { options: metadata } : {}) });
    return index;
  }

  /** A part that goes back as it is. */
  keep({ providerMetadata, ...value }: JsonObject): void {
    this.#pieces.push({ kind: "block", value: { ...value, ...optionsOf(providerMetadata) } });
  }

  /** A call that the provider itself runs. */
  keepProviderCall({ toolCallId, toolName, input, providerMetadata }: JsonObject): void {
    const call = { type: "tool-call", toolCallId, toolName, input: parsed(input), providerExecuted: true };
    this.#keepDefined({ ...call, ...optionsOf(providerMetadata) });
  }

  /** Its result; one that is not final yet is passed over. */
  keepProviderResult({
    toolCallId,
    toolName,
    result,
    isError,
    preliminary,
    providerMetadata,
  }: JsonObject): void {
    if (preliminary === true) return;
    const output = { type: isError === true ? "error-json" : "json", value: result ?? null };
    this.#keepDefined({ type: "tool-result", toolCallId, toolName, output, ...optionsOf(providerMetadata) });
  }

  /** A call that waits for an approval nobody will give: sent back, it would still wait. */
  dropProviderCall(toolCallId: string): void {
    this.#isWaiting = true;
    const index = this.#pieces.findIndex(
      (piece) => piece.kind === "block" && piece.value.toolCallId === toolCallId,
    );
    if (index >= 0) this.#pieces.splice(index, 1);
  }

  /** The parts of the reply; `undefined` where text and calls say it all, or where they cannot be kept. */
  parts(): NativePart[] | undefined {
    const parts = this.#pieces.flatMap(toPart);
    const saysMore = parts.some((part) => part.type === "block" || part.extra !== undefined);
    return saysMore && !this.#isMixed && isJson(parts) ? parts : undefined;
  }

  #isBehind(passage: Passage): boolean {
    const last = this.#lastText;
    return last !== undefined && this.#pieces.indexOf(passage) < this.#pieces.indexOf(last);
  }

  #keepDefined(value: Record<string, Json | undefined>): void {
    const defined = Object.entries(value).flatMap(([key, member]) =>
      member === undefined ? [] : [[key, member]],
    );
    this.#pieces.push({ kind: "block", value: Object.fromEntries(defined) });
  }
}

function annotate(passage: Passage, metadata: Json | undefined): void {
  if (isJsonObject(metadata)) passage.options = { ...passage.options, ...metadata };
}

function toPart(piece: Piece): NativePart[] {
  const extra =
    piece.kind === "block" || piece.options === undefined ? {} : { extra: optionsOf(piece.options) };
  switch (piece.kind) {
    case "text":
      return piece.text === "" && piece.options === undefined
        ? []
        : [{ type: "text", length: piece.text.length, ...extra }];
    case "reasoning":
      if (piece.text === "" && piece.options === undefined) return [];
      return [
        {
          type: "block",
          value: { type: "reasoning", text: piece.text.toWellFormed(), ...optionsOf(piece.options) },
        },
      ];
    case "call":
      return [{ type: "tool-call", index: piece.index, ...extra }];
    case "block":
      return [{ type: "block", value: piece.value }];
    default:
      return piece satisfies never;
  }
}

/** What a provider gave as metadata it takes back as options. */
function optionsOf(metadata: Json | undefined): JsonObject {
  return isJsonObject(metadata) ? { providerOptions: metadata } : {};
}

/** The input of a call is JSON text in a reply and the value itself in a prompt. */
function parsed(input: Json | undefined): Json {
  if (typeof input !== "string") return input ?? {};
  try {
    return JSON.parse(input);
  } catch {
    return input;
  }
}
