/** The parts of one reply of an AI SDK model, kept to be sent back to it (AISDK-2). Pure state. */
import type { NativePart } from "../../../model/messages.ts";
import { defined } from "../../../shared/defined.ts";
import { isJson, isJsonObject, type Json, type JsonObject, parseJson } from "../../../shared/json.ts";

interface Passage {
  kind: "text" | "reasoning";
  text: string;
  metadata?: JsonObject;
}

export class AiSdkReplyParts {
  readonly #parts: (Passage | NativePart)[] = [];
  /** Passages by kind and id: the pieces of several may alternate. */
  readonly #open = new Map<string, Passage>();
  #calls = 0;
  #isWaiting = false;
  #lastText: Passage | undefined;
  /** Set when text was added to an earlier passage again: the parts would point to the wrong texts. */
  #isMixed = false;

  get hasCalls(): boolean {
    return this.#calls > 0;
  }

  /** Set if a call waits for someone's approval. */
  get isWaiting(): boolean {
    return this.#isWaiting;
  }

  /** Begins a passage. An id may be used again once its passage has ended. */
  begin(kind: Passage["kind"], id: string, metadata: Json | undefined): Passage {
    const passage: Passage = { kind, text: "" };
    this.#open.set(`${kind} ${id}`, passage);
    this.#parts.push(passage);
    annotate(passage, metadata);
    return passage;
  }

  add(kind: Passage["kind"], id: string, metadata: Json | undefined, text = ""): void {
    const passage = this.#open.get(`${kind} ${id}`) ?? this.begin(kind, id, undefined);
    if (kind === "text" && text !== "" && this.#lastText !== passage) {
      this.#isMixed ||= passage.text !== "" || this.#isBeforeLast(passage);
      this.#lastText = passage;
    }
    passage.text += text;
    annotate(passage, metadata);
  }

  addCall(metadata: Json | undefined): number {
    const index = this.#calls++;
    const extra = isJsonObject(metadata) ? optionsOf(metadata) : undefined;
    this.#parts.push({ type: "tool-call", index, ...defined({ extra }) });
    return index;
  }

  keep({ providerMetadata, ...value }: JsonObject): void {
    this.#parts.push({ type: "block", value: { ...value, ...optionsOf(providerMetadata) } });
  }

  /** Keeps a call that the provider runs itself. Its input is JSON text in a reply and the value itself in a prompt. */
  keepProviderCall({ toolCallId, toolName, input: given, providerMetadata }: JsonObject): void {
    const input = (typeof given === "string" ? parseJson(given) : undefined) ?? given ?? {};
    const call = { ...defined({ toolCallId, toolName }), input, providerExecuted: true };
    this.keep({ type: "tool-call", ...call, ...defined({ providerMetadata }) });
  }

  /** Keeps the result of such a call, unless it is preliminary. */
  keepProviderResult(part: JsonObject): void {
    if (part.preliminary === true) return;
    const { toolCallId, toolName, result = null, isError, providerMetadata } = part;
    const output = { type: isError === true ? "error-json" : "json", value: result };
    this.keep({
      type: "tool-result",
      ...defined({ toolCallId, toolName }),
      output,
      ...defined({ providerMetadata }),
    });
  }

  /** Drops a call that waits for an approval. It cannot be approved, and would still wait if it were sent back. */
  dropProviderCall(toolCallId: string): void {
    this.#isWaiting = true;
    const index = this.#parts.findIndex((part) => "value" in part && part.value.toolCallId === toolCallId);
    if (index >= 0) this.#parts.splice(index, 1);
  }

  /** Returns the parts of the reply, or an empty list if they cannot be kept. */
  parts(): NativePart[] {
    const parts = this.#parts.flatMap(toPart);
    return !this.#isMixed && isJson(parts) ? parts : [];
  }

  #isBeforeLast(passage: Passage): boolean {
    const last = this.#lastText;
    return last !== undefined && this.#parts.indexOf(passage) < this.#parts.indexOf(last);
  }
}

function annotate(passage: Passage, metadata: Json | undefined): void {
  if (isJsonObject(metadata)) passage.metadata = { ...passage.metadata, ...metadata };
}

function toPart(part: Passage | NativePart): NativePart[] {
  if (!("kind" in part)) return [part];
  const { kind, text, metadata } = part;
  if (text === "" && metadata === undefined) return [];
  const options = optionsOf(metadata);
  if (kind === "reasoning")
    return [{ type: "block", value: { type: kind, text: text.toWellFormed(), ...options } }];
  return [{ type: "text", length: text.length, ...(metadata && { extra: options }) }];
}

/** Turns the metadata of a reply into the options of a prompt. */
function optionsOf(metadata: Json | undefined): JsonObject {
  return isJsonObject(metadata) ? { providerOptions: metadata } : {};
}
