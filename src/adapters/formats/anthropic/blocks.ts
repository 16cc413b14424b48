/**
 * The content blocks of one reply, from their beginnings and deltas. Text, reasoning and calls of our tools are reported
 * as they come; every other block (tools that the provider runs itself, reasoning with its signature, what is not known
 * yet) is kept as it came.
 */
import type { NativePart } from "../../../model/messages.ts";
import type { ModelDelta } from "../../../model/reply.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { needsNative } from "../common/native.ts";

interface Block {
  type: string;
  /** As it came, its own deltas included. */
  value: JsonObject;
  /** UTF-16 units of a text block. */
  length: number;
  /** The place of a call among the calls; -1 for other blocks. */
  call: number;
  /** JSON text of an input that came in pieces. */
  input: string;
}

export class ReplyBlocks {
  readonly #blocks: Block[] = [];
  readonly #byIndex = new Map<number, Block>();
  #calls = 0;

  get size(): number {
    return this.#blocks.length;
  }

  get hasCalls(): boolean {
    return this.#calls > 0;
  }

  /** A block begins; `index` is the provider's, absent for a block that is whole. */
  begin(value: JsonObject, index?: number): ModelDelta[] {
    const type = String(value.type);
    const isCall = type === "tool_use";
    const block: Block = {
      type,
      value: { ...value },
      length: 0,
      call: isCall ? this.#calls++ : -1,
      input: "",
    };
    const startsReasoning =
      type === "thinking" && this.#blocks.some((earlier) => earlier.type === "thinking");
    this.#blocks.push(block);
    if (index !== undefined) this.#byIndex.set(index, block);
    if (isCall) return [{ type: "tool-call", index: block.call, ...named(value) }];
    if (type === "text") return textOf(block, value.text);
    if (type !== "thinking") return [];
    return [...(startsReasoning ? reasoning("\n\n") : []), ...reasoning(value.thinking)];
  }

  /** A piece of a block; `undefined` if no such block is open. */
  add(index: number, delta: JsonObject): ModelDelta[] | undefined {
    const block = this.#byIndex.get(index);
    if (block === undefined) return undefined;
    if (delta.type === "input_json_delta") return inputOf(block, delta.partial_json);
    if (delta.type === "text_delta" && block.type === "text") return textOf(block, delta.text);
    if (delta.type === "citations_delta") {
      const cited = Array.isArray(block.value.citations) ? block.value.citations : [];
      block.value.citations = [...cited, delta.citation ?? null];
      return [];
    }
    const { type: _type, ...pieces } = delta;
    for (const [key, piece] of Object.entries(pieces)) block.value[key] = joined(block.value[key], piece);
    return delta.type === "thinking_delta" ? reasoning(delta.thinking) : [];
  }

  /** A block is complete. */
  end(index: number): ModelDelta[] {
    const block = this.#byIndex.get(index);
    this.#byIndex.delete(index);
    return block === undefined ? [] : this.#complete(block);
  }

  /** The reply is complete: blocks whose end did not come are, too. */
  close(): ModelDelta[] {
    return [...this.#byIndex.keys()].flatMap((index) => this.end(index));
  }

  /** A block that came whole. */
  whole(value: JsonObject): ModelDelta[] {
    const deltas = this.begin(value);
    const block = this.#blocks.at(-1);
    return block === undefined ? deltas : [...deltas, ...this.#complete(block)];
  }

  /** The reply as its provider wants it back; `undefined` where text and calls say it all. */
  native(): NativePart[] | undefined {
    const kept = this.#blocks.filter((block) => !this.#isUnanswered(block));
    const parts = kept.flatMap(toPart);
    return needsNative(parts) ? parts : undefined;
  }

  /** A tool that the provider did not come to run: refused when it is sent back, unless it waits for a call of ours. */
  #isUnanswered({ value }: Block): boolean {
    if (this.hasCalls || (value.type !== "server_tool_use" && value.type !== "mcp_tool_use")) return false;
    return this.#blocks.every((other) => other.value.tool_use_id !== value.id);
  }

  #complete(block: Block): ModelDelta[] {
    const { input } = block.value;
    if (block.call < 0) {
      if (block.input !== "") block.value.input = parsed(block.input) ?? input ?? {};
      return [];
    }
    const isGiven = block.input === "" && isJsonObject(input) && Object.keys(input).length > 0;
    return isGiven ? [{ type: "tool-call", index: block.call, arguments: JSON.stringify(input) }] : [];
  }
}

function toPart({ type, value, length, call }: Block): NativePart[] {
  if (type === "text") {
    const { type: _type, text: _text, ...rest } = value;
    const extra = beside(rest);
    return length === 0 ? [] : [{ type: "text", length, ...extra }];
  }
  if (call >= 0) {
    const { type: _type, id: _id, name: _name, input: _input, ...rest } = value;
    return [{ type: "tool-call", index: call, ...beside(rest) }];
  }
  // Reasoning that was cut off before its signature is refused when it is sent back.
  return type === "thinking" && !value.signature ? [] : [{ type: "block", value }];
}

/** What stands beside a text or a call, without what says nothing: no citations, called by the model itself. */
function beside(rest: JsonObject): { extra?: JsonObject } {
  const told = Object.entries(rest).filter(([, value]) => {
    if (value === null || (Array.isArray(value) && value.length === 0)) return false;
    return !(isJsonObject(value) && value.type === "direct");
  });
  return told.length === 0 ? {} : { extra: Object.fromEntries(told) };
}

function textOf(block: Block, piece: Json | undefined): ModelDelta[] {
  if (typeof piece !== "string" || piece === "") return [];
  block.length += piece.length;
  return [{ type: "text", text: piece }];
}

function inputOf(block: Block, piece: Json | undefined): ModelDelta[] {
  if (typeof piece !== "string" || piece === "") return [];
  block.input += piece;
  return block.call < 0 ? [] : [{ type: "tool-call", index: block.call, arguments: piece }];
}

function reasoning(piece: Json | undefined): ModelDelta[] {
  return typeof piece === "string" && piece !== "" ? [{ type: "reasoning", text: piece }] : [];
}

function joined(whole: Json | undefined, piece: Json): Json {
  if (typeof whole === "string" && typeof piece === "string") return whole + piece;
  return Array.isArray(whole) && Array.isArray(piece) ? [...whole, ...piece] : piece;
}

function named({ id, name }: JsonObject): { id?: string; name?: string } {
  return {
    ...(typeof id === "string" && id ? { id } : {}),
    ...(typeof name === "string" && name ? { name } : {}),
  };
}

function parsed(input: string): Json | undefined {
  try {
    return JSON.parse(input);
  } catch {
    return undefined;
  }
}
