/**
 * The parts of one reply. Text and thoughts are reported as they arrive, calls at the end. Every other part is kept unchanged: code and
 * tools that the provider ran, media, parts of unknown types, and signatures.
 *
 * GEMINI-6  If a reply contains the result of a call, Google's server ran the call. It is not a call of ours, and is sent back with its
 *           result.
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

interface Call {
  id?: string;
  name: string;
  args: JsonObject;
  /** Additional members of the call, such as its signature. */
  extra?: JsonObject;
  /** The reply has the call's result: Google's server ran it. */
  isAnswered: boolean;
}

export class GeminiReplyParts {
  readonly #parts: (NativePart | Call)[] = [];
  #open: Call | undefined;

  get hasCalls(): boolean {
    return this.#ours.length > 0;
  }

  get #calls(): Call[] {
    return this.#parts.filter((part) => "args" in part);
  }

  get #ours(): Call[] {
    return this.#calls.filter(({ isAnswered }) => !isAnswered);
  }

  /** Returns the deltas of a part; `undefined` if its shape is unknown. */
  add(part: JsonObject): ModelDelta[] | undefined {
    const { text, thoughtSignature } = part;
    if (part.functionCall !== undefined) return this.#addCall(part);
    if (isJsonObject(part.functionResponse)) this.#answer(part.functionResponse);
    const isThought = part.thought === true;
    if (typeof text === "string" && !isThought) return this.#addText(text, part);
    // Only signed thoughts are sent back.
    const isKept = isThought ? thoughtSignature !== undefined : Object.keys(part).length > 0;
    if (isKept) this.#parts.push({ type: "block", value: part });
    return isThought && typeof text === "string" && text !== "" ? [{ type: "reasoning", text }] : [];
  }

  /** Reports the calls. Not before the reply is complete: only then is known which of them Google's server ran. */
  close(): ModelDelta[] {
    return this.#ours.map(({ id, name, args }, index) => ({
      type: "tool-call",
      index,
      ...filled({ id, name }),
      ...(Object.keys(args).length === 0 ? {} : { arguments: JSON.stringify(args) }),
    }));
  }

  parts(): NativePart[] {
    let index = 0;
    return this.#parts.map((part): NativePart => {
      if (!("args" in part)) return part;
      const { id, name, args, extra, isAnswered } = part;
      if (!isAnswered) return { type: "tool-call", index: index++, ...defined({ extra }) };
      return { type: "block", value: { functionCall: { ...defined({ id }), name, args }, ...extra } };
    });
  }

  /** A text with a signature stays a part of its own; plain texts that follow each other become one. */
  #addText(text: string, part: JsonObject): ModelDelta[] {
    const extra = extraOf(part, "text");
    const last = this.#parts.at(-1);
    const continued = last !== undefined && "length" in last && last.extra === undefined ? last : undefined;
    if (extra === undefined && continued !== undefined) continued.length += text.length;
    else if (extra !== undefined) this.#parts.push({ type: "text", length: text.length, extra });
    else if (text !== "") this.#parts.push({ type: "text", length: text.length });
    return text === "" ? [] : [{ type: "text", text }];
  }

  #addCall(part: JsonObject): ModelDelta[] | undefined {
    const { data: given } = functionCall.safeParse(part.functionCall);
    if (given === undefined) return undefined;
    if (given.name) {
      const known = defined({ id: given.id || undefined, extra: extraOf(part, "functionCall") });
      this.#open = { ...known, name: given.name, args: {}, isAnswered: false };
      this.#parts.push(this.#open);
    }
    return this.#continue(given) ? [] : undefined;
  }

  /**
   * Adds to the open call. Reports whether the piece can be read. The empty piece that ends a call may come when the call
   * is complete already.
   */
  #continue({ args, partialArgs, willContinue }: z.infer<typeof functionCall>): boolean {
    const open = this.#open;
    if (open === undefined) return !args && !partialArgs;
    if (args) open.args = { ...open.args, ...args };
    if (partialArgs && !putPartialArgs(open.args, partialArgs)) return false;
    if (!willContinue) this.#open = undefined;
    return true;
  }

  /** Finds the call of a result in the reply, such as one of an MCP server: by its id, else by its name. */
  #answer({ id, name }: JsonObject): void {
    const waiting = this.#ours;
    const call = waiting.find((one) => one.id !== undefined && one.id === id);
    const found = call ?? waiting.find((one) => one.name === name && (!id || one.id === undefined));
    if (found !== undefined) found.isAnswered = true;
  }
}

function extraOf(part: JsonObject, key: string): JsonObject | undefined {
  const beside = Object.entries(part).filter(([name]) => name !== key && name !== "thought");
  return beside.length === 0 ? undefined : Object.fromEntries(beside);
}
