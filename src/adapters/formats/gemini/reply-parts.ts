/**
 * The parts of one reply. Text, thoughts and calls are reported as they come; what else there is (code that the provider
 * ran, media, what is not known yet) is kept as it came, and so are the signatures.
 */

import { z } from "zod";
import type { NativePart } from "../../../model/messages.ts";
import type { ModelDelta } from "../../../model/reply.ts";
import { defined } from "../../../shared/defined.ts";
import { isJsonObject, type JsonObject } from "../../../shared/json.ts";
import { needsNative } from "../common/native.ts";
import { putPartialArgs } from "./partial-args.ts";

const functionCall = z.object({
  id: z.string().nullish(),
  name: z.string().nullish(),
  args: z.custom<JsonObject>(isJsonObject).nullish(),
  partialArgs: z.unknown().optional(),
  willContinue: z.boolean().nullish(),
});

type FunctionCall = z.infer<typeof functionCall>;

export class ReplyParts {
  readonly #parts: NativePart[] = [];
  #calls = 0;
  /** The call whose arguments are not complete. */
  #open: { index: number; args: JsonObject } | undefined;

  get hasCalls(): boolean {
    return this.#calls > 0;
  }

  /** What one part adds; `undefined` if its shape is unknown. */
  add(part: JsonObject): ModelDelta[] | undefined {
    if (part.functionCall !== undefined) return this.#addCall(part);
    if (part.thought === true) return this.#addThought(part);
    if (typeof part.text === "string") return this.#addText(part.text, part);
    if (Object.keys(part).length > 0) this.#parts.push({ type: "block", value: part });
    return [];
  }

  /** The reply is complete: what was still open is closed. */
  close(): ModelDelta[] {
    const open = this.#open;
    this.#open = undefined;
    return open === undefined ? [] : [argumentsOf(open)];
  }

  /** The reply as its provider wants it back; `undefined` where text and calls say it all. */
  native(): NativePart[] | undefined {
    return needsNative(this.#parts) ? this.#parts : undefined;
  }

  /** Thoughts are not wanted back, unless one is signed. */
  #addThought(part: JsonObject): ModelDelta[] {
    if (part.thoughtSignature !== undefined) this.#parts.push({ type: "block", value: part });
    return typeof part.text === "string" && part.text !== "" ? [{ type: "reasoning", text: part.text }] : [];
  }

  /** A text with something beside it stays a part of its own; plain ones are one text. */
  #addText(text: string, part: JsonObject): ModelDelta[] {
    const extra = extraOf(part, "text");
    const last = this.#parts.at(-1);
    if (extra === undefined && last?.type === "text" && last.extra === undefined) last.length += text.length;
    else if (extra !== undefined) this.#parts.push({ type: "text", length: text.length, extra });
    else if (text !== "") this.#parts.push({ type: "text", length: text.length });
    return text === "" ? [] : [{ type: "text", text }];
  }

  #addCall(part: JsonObject): ModelDelta[] | undefined {
    const { success, data: call } = functionCall.safeParse(part.functionCall);
    if (!success) return undefined;
    if (!call.name) return this.#continue(call);
    const before = this.close();
    const index = this.#calls++;
    const extra = extraOf(part, "functionCall");
    this.#parts.push({ type: "tool-call", index, ...defined({ extra }) });
    this.#open = { index, args: {} };
    const after = this.#continue(call);
    if (after === undefined) return undefined;
    const begun: ModelDelta = {
      type: "tool-call",
      index,
      ...(call.id ? { id: call.id } : {}),
      name: call.name,
    };
    return [...before, begun, ...after];
  }

  /** More of the open call. The empty piece that ends a call may come when it is complete already. */
  #continue({ args, partialArgs, willContinue }: FunctionCall): ModelDelta[] | undefined {
    const open = this.#open;
    const isEmpty = !args && !partialArgs;
    if (open === undefined) return isEmpty ? [] : undefined;
    if (args) open.args = { ...open.args, ...args };
    if (partialArgs && !putPartialArgs(open.args, partialArgs)) return undefined;
    return willContinue ? [] : this.close();
  }
}

function argumentsOf({ index, args }: { index: number; args: JsonObject }): ModelDelta {
  const input = Object.keys(args).length === 0 ? {} : { arguments: JSON.stringify(args) };
  return { type: "tool-call", index, ...input };
}

/** What stands beside a part's own key. */
function extraOf(part: JsonObject, key: string): JsonObject | undefined {
  const rest = Object.entries(part).filter(([name]) => name !== key && name !== "thought");
  return rest.length === 0 ? undefined : Object.fromEntries(rest);
}
