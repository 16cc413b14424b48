/**
 * Tool results that are too large for a turn: the view that replaces a result, and the tool that reads the rest. Pure.
 *
 * LARGE-1  A call with a large result succeeds. The model and the readers get a view: the size, the beginning, the end, and the call that
 *          reads more. The view has a bounded length, and is well-formed Unicode.
 * LARGE-2  The whole result is an attachment of the conversation, as JSON. If it cannot be stored, the view says why.
 * LARGE-3  The tool reads it by pages, each from an offset in bytes and within a budget of tokens. It reads results of its own conversation.
 */
import type { ToolDefinition } from "../protocol/definitions.ts";
import { MAX_OUTPUT_DEPTH } from "../protocol/executor-api.ts";
import type { ResultExcerpt } from "../protocol/large-result.ts";
import { isJsonObject, type Json, type JsonObject } from "../shared/json.ts";
import { shapeProblem } from "../shared/json-shape.ts";
import { wholeLength } from "../shared/text.ts";
import { utf8Length } from "../shared/utf8.ts";
import { isAttachmentId } from "./attachment.ts";

/** Length of the beginning and of the end in a view, in UTF-16 units. */
const [HEAD_LENGTH, TAIL_LENGTH] = [3_000, 1_000];

/** Tokens of a page: the least, and the usual number. */
const [MIN_PAGE, PAGE] = [100, 2_000];
const MAX_PAGE = 8_000;

export const RESULT_TYPE = "application/json";

/** The first member of a view. Readers of a transcript find views by it. */
const STORED = "stored_result";

/** The tool that reads stored results. Agents have it while their context has such a result. */
export const READ_RESULT = { library: "dramatis", id: "read_tool_result", version: 0 } as const;

export const readResultTool: ToolDefinition = {
  name: READ_RESULT.id,
  description:
    "Reads a part of a tool's result that was too large to be shown, by the `id` in the result. Begin at an `offset` in bytes; `next` of the answer is where the next part begins.",
  inputSchema: {
    type: "object",
    properties: {
      id: { type: "string", description: "The id of the stored result." },
      offset: { type: "integer", minimum: 0, description: "Bytes from the beginning; 0 when absent." },
      tokens: {
        type: "integer",
        minimum: MIN_PAGE,
        maximum: MAX_PAGE,
        description: `The size of the part; ${PAGE} when absent.`,
      },
    },
    required: ["id"],
  },
  effect: "pure",
  hosts: [],
  timeoutMs: 60_000,
};

/** A part of a stored result that a model asks for. */
export interface PageRequest {
  id: string;
  offset: number;
  tokens: number;
}

/** Returns the part that a call of the tool asks for, with defaults. Planning has checked the input. */
export function pageRequest({ id, offset, tokens }: JsonObject): PageRequest {
  return {
    id: String(id),
    offset: typeof offset === "number" ? offset : 0,
    tokens: typeof tokens === "number" ? tokens : PAGE,
  };
}

/** The place of a whole result, or the reason why it was not kept. */
export type ResultReference = { id: string } | { lost: string };

/** Reports whether the JSON of a result is too large for a turn: by its bytes, or by the work to parse it. */
export function isLarge(text: string, maxBytes: number): boolean {
  return utf8Length(text) > maxBytes || shapeProblem(text, MAX_OUTPUT_DEPTH)?.code === "TOO_LARGE";
}

export function excerptOf(text: string): ResultExcerpt {
  const head = text.slice(0, wholeLength(text, HEAD_LENGTH)).toWellFormed();
  return { bytes: utf8Length(text), head, tail: tailOf(text, TAIL_LENGTH).toWellFormed() };
}

export function viewOfResult({ bytes, head, tail }: ResultExcerpt, kept: ResultReference): JsonObject {
  const seen = `The tool ran. Its result has ${bytes} bytes of JSON, which is too much to show. Here are its beginning and its end.`;
  const isKept = "id" in kept;
  const call = isKept && `${READ_RESULT.id}(${JSON.stringify({ id: kept.id, offset: utf8Length(head) })})`;
  return {
    [STORED]: { ...(isKept ? { id: kept.id } : {}), bytes },
    note: isKept ? `${seen} Read on with ${call}.` : `${seen} The rest was not kept: ${kept.lost}`,
    head,
    tail,
  };
}

/** Returns the end of a text, without half of a surrogate pair. */
function tailOf(text: string, limit: number): string {
  const start = wholeLength(text, Math.max(0, text.length - limit));
  return text.slice(start);
}

/** Returns the id of the attachment that has the whole result; `undefined` for a result that is not a view. */
export function storedResultId(result: Json | undefined): string | undefined {
  const stored = isJsonObject(result) ? result[STORED] : undefined;
  const id = isJsonObject(stored) ? stored.id : undefined;
  return typeof id === "string" && isAttachmentId(id) ? id : undefined;
}

export function isStoredResult(content: string): boolean {
  return content.startsWith(`{"${STORED}":{"id":"att_`);
}
