/**
 * The content blocks of one reply, built from their beginnings and deltas. Text, reasoning and calls of our tools are
 * reported as they arrive. Every other block is kept unchanged: tools that the provider runs itself, reasoning with its
 * signature, blocks of unknown types.
 */
import type { NativePart } from "../../../model/messages.ts";
import type { ModelDelta } from "../../../model/reply.ts";
import { isJsonObject, type Json, type JsonObject, parseJson } from "../../../shared/json.ts";
import { filled, membersOf, stringOf } from "../common/json.ts";

interface Block {
  /** As it came, with its deltas. */
  value: JsonObject;
  /** UTF-16 units of a text block. */
  length: number;
  /** The place of a call among the calls; -1 for other blocks. */
  call: number;
  /** JSON text of an input that came in pieces. */
  input: string;
}

export class AnthropicReplyParts {
  readonly #blocks: Block[] = [];
  /** The open blocks, by the provider's index. */
  readonly #open = new Map<number, Block>();
  #calls = 0;

  get size(): number {
    return this.#blocks.length;
  }

  get hasCalls(): boolean {
    return this.#calls > 0;
  }

  begin(index: number, value: JsonObject): ModelDelta[] {
    const { type } = value;
    const isFirst = this.#blocks.every((earlier) => earlier.value.type !== type);
    const call = type === "tool_use" ? this.#calls++ : -1;
    const block: Block = { value: { ...value }, length: 0, call, input: "" };
    this.#blocks.push(block);
    this.#open.set(index, block);
    if (call >= 0)
      return [
        { type: "tool-call", index: call, ...filled({ id: stringOf(value.id), name: stringOf(value.name) }) },
      ];
    if (type === "text") return textDeltas(block, value.text);
    if (type !== "thinking") return [];
    return [...(isFirst ? [] : reasoningDeltas("\n\n")), ...reasoningDeltas(value.thinking)];
  }

  /** Adds a piece to a block; returns `undefined` if no such block is open. */
  add(index: number, delta: JsonObject): ModelDelta[] | undefined {
    const block = this.#open.get(index);
    if (block === undefined) return undefined;
    const { value } = block;
    if (delta.type === "input_json_delta") return inputDeltas(block, delta.partial_json);
    if (delta.type === "text_delta" && value.type === "text") return textDeltas(block, delta.text);
    if (delta.type === "citations_delta") {
      const cited = Array.isArray(value.citations) ? value.citations : [];
      value.citations = [...cited, delta.citation ?? null];
      return [];
    }
    const { type: _type, ...pieces } = delta;
    for (const [key, piece] of Object.entries(pieces)) value[key] = joined(value[key], piece);
    return delta.type === "thinking_delta" ? reasoningDeltas(delta.thinking) : [];
  }

  /** Completes a block. An input that came in pieces replaces its initial input. */
  end(index: number): ModelDelta[] {
    const block = this.#open.get(index);
    this.#open.delete(index);
    if (block === undefined) return [];
    const { call, value } = block;
    const { input } = value;
    if (call < 0) {
      if (block.input !== "") value.input = parseJson(block.input) ?? input ?? {};
      return [];
    }
    const isWhole = block.input === "" && isJsonObject(input) && Object.keys(input).length > 0;
    return isWhole ? [{ type: "tool-call", index: call, arguments: JSON.stringify(input) }] : [];
  }

  whole(values: readonly JsonObject[]): ModelDelta[] {
    return values.flatMap((value, index) => [...this.begin(index, value), ...this.end(index)]);
  }

  /** Completes the blocks without an end event. */
  close(): ModelDelta[] {
    return [...this.#open.keys()].flatMap((index) => this.end(index));
  }

  /** A paused reply is sent back whole, so the API runs its pending tool. */
  parts(isPaused = false): NativePart[] {
    return this.#blocks.filter((block) => isPaused || !this.#isUnanswered(block)).flatMap(toPart);
  }

  /** The API refuses one of its own tool calls without a result, unless that call waits for a call of a platform tool. */
  #isUnanswered({ value }: Block): boolean {
    if (this.hasCalls || (value.type !== "server_tool_use" && value.type !== "mcp_tool_use")) return false;
    return this.#blocks.every((other) => other.value.tool_use_id !== value.id);
  }
}

function toPart({ value, length, call }: Block): NativePart[] {
  const { type, text: _text, id: _id, name: _name, input: _input, ...beside } = value;
  if (type === "text") return length === 0 ? [] : [{ type, length, ...extraOf(beside) }];
  if (call >= 0) return [{ type: "tool-call", index: call, ...extraOf(beside) }];
  // The API refuses reasoning that was cut off before its signature.
  return type === "thinking" && !value.signature ? [] : [{ type: "block", value }];
}

/** Drops meaningless members: empty citations, or the model as the caller. */
function extraOf(beside: JsonObject): { extra?: JsonObject } {
  const kept = Object.entries(beside).filter(([, value]) => {
    if (value === null || (Array.isArray(value) && value.length === 0)) return false;
    return membersOf(value).type !== "direct";
  });
  return filled({ extra: Object.fromEntries(kept) });
}

function textDeltas(block: Block, piece: Json | undefined): ModelDelta[] {
  if (typeof piece !== "string" || piece === "") return [];
  block.length += piece.length;
  return [{ type: "text", text: piece }];
}

function inputDeltas(block: Block, piece: Json | undefined): ModelDelta[] {
  if (typeof piece !== "string" || piece === "") return [];
  block.input += piece;
  return block.call < 0 ? [] : [{ type: "tool-call", index: block.call, arguments: piece }];
}

function reasoningDeltas(piece: Json | undefined): ModelDelta[] {
  return typeof piece === "string" && piece !== "" ? [{ type: "reasoning", text: piece }] : [];
}

function joined(whole: Json | undefined, piece: Json): Json {
  if (typeof whole === "string" && typeof piece === "string") return whole + piece;
  return Array.isArray(whole) && Array.isArray(piece) ? [...whole, ...piece] : piece;
}
