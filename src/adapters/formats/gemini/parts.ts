/**
 * The parts of one reply. Text, thoughts and calls are reported as they arrive. Every other part is kept as it came: code
 * that the provider ran, media, parts of unknown types; so are signatures.
 */

import { z } from "zod";
import type { NativePart } from "../../../model/messages.ts";
import type { ModelDelta } from "../../../model/reply.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { filled } from "../common/json.ts";
import { putPartialArgs } from "./partial-args.ts";

const functionCall = z.object({
  id: z.string().nullish(),
  name: z.string().nullish(),
  args: z.custom<JsonObject>(isJsonObject).nullish(),
  partialArgs: z.unknown().optional(),
  willContinue: z.boolean().nullish(),
});

export class GeminiReplyParts {
  readonly #parts: NativePart[] = [];
  #calls = 0;
  /** The call whose arguments are not complete. */
  #open: { index: number; args: JsonObject } | undefined;

  get hasCalls(): boolean {
    return this.#calls > 0;
  }

  /** Returns the deltas of a part; `undefined` if its shape is unknown. */
  add(part: JsonObject): ModelDelta[] | undefined {
    const { text, thoughtSignature } = part;
    if (part.functionCall !== undefined) return this.#addCall(part);
    const isThought = part.thought === true;
    if (typeof text === "string" && !isThought) return this.#addText(text, part);
    // Of the thoughts, only signed ones go back.
    const isKept = isThought ? thoughtSignature !== undefined : Object.keys(part).length > 0;
    if (isKept) this.#parts.push({ type: "block", value: part });
    return isThought && typeof text === "string" && text !== "" ? [{ type: "reasoning", text }] : [];
  }

  /** Completes the open call. */
  close(): ModelDelta[] {
    if (this.#open === undefined) return [];
    const { index, args } = this.#open;
    this.#open = undefined;
    const isEmpty = Object.keys(args).length === 0;
    return [{ type: "tool-call", index, ...(isEmpty ? {} : { arguments: JSON.stringify(args) }) }];
  }

  parts(): NativePart[] {
    return this.#parts;
  }

  /** A text with a signature stays a part of its own; plain texts that follow each other become one. */
  #addText(text: string, part: JsonObject): ModelDelta[] {
    const extra = extraOf(part, "text");
    const last = this.#parts.at(-1);
    if (extra === undefined && last?.type === "text" && last.extra === undefined) last.length += text.length;
    else if (extra !== undefined) this.#parts.push({ type: "text", length: text.length, extra });
    else if (text !== "") this.#parts.push({ type: "text", length: text.length });
    return text === "" ? [] : [{ type: "text", text }];
  }

  #addCall(part: JsonObject): ModelDelta[] | undefined {
    const { data: call } = functionCall.safeParse(part.functionCall);
    if (call === undefined) return undefined;
    if (!call.name) return this.#continue(call);
    const before = this.close();
    const index = this.#calls++;
    this.#parts.push({ type: "tool-call", index, ...defined({ extra: extraOf(part, "functionCall") }) });
    this.#open = { index, args: {} };
    const after = this.#continue(call);
    if (after === undefined) return undefined;
    return [...before, { type: "tool-call", index, ...filled({ id: call.id, name: call.name }) }, ...after];
  }

  /** Adds to the open call. The empty piece that ends a call may come when the call is complete already. */
  #continue({ args, partialArgs, willContinue }: z.infer<typeof functionCall>): ModelDelta[] | undefined {
    const open = this.#open;
    const isEmpty = !args && !partialArgs;
    if (open === undefined) return isEmpty ? [] : undefined;
    if (args) open.args = { ...open.args, ...args };
    if (partialArgs && !putPartialArgs(open.args, partialArgs)) return undefined;
    return willContinue ? [] : this.close();
  }
}

/** Returns the members beside a part's own key. */
function extraOf(part: JsonObject, key: string): JsonObject | undefined {
  const beside = Object.entries(part).filter(([name]) => name !== key && name !== "thought");
  return beside.length === 0 ? undefined : Object.fromEntries(beside);
}
