/**
 * A file of an actor: lines of JSON. The first line is a header. The last line has the number of lines.
 *
 * BACKUP-1  A file is read and written line by line, so that memory holds one line at a time.
 * BACKUP-2  An invalid or incomplete file is rejected with an error that names the line. No part of the file becomes visible.
 */
import { z } from "zod";
import type { ImportPart } from "../../../protocol/data-api.ts";
import type { ExportHeader } from "../../../protocol/memory.ts";
import { DramatisError, hasCode } from "../../../shared/errors.ts";
import { parseJsonText } from "../../../shared/json.ts";
import { validate } from "../../../shared/validation.ts";

/** Nesting of a line: an event may nest 200 deep. */
const MAX_LINE_DEPTH = 250;
const VERSION = 1;

const partSchema = z.strictObject({
  from: z.int().min(1),
  lines: z.array(z.string()).max(1_000),
  isLast: z.boolean(),
  attempt: z.string().max(100).exactOptional(),
});

/** Returns the bytes of lines. Encodes each line on demand. */
export function linesStream(lines: Iterator<unknown> | AsyncIterator<unknown>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let count = 0;
  return new ReadableStream({
    type: "bytes",
    async pull(controller: ReadableByteStreamController) {
      try {
        const { done, value } = await lines.next();
        const line = done === true ? { end: { lines: count + 1 } } : value;
        count += 1;
        controller.enqueue(encoder.encode(`${JSON.stringify(line)}\n`));
        if (done === true) controller.close();
      } catch (error) {
        controller.error(error);
      }
    },
    async cancel() {
      await lines.return?.();
    },
  });
}

export function headerOf(dramatis: ExportHeader["dramatis"], id: string, exportedAt: string): ExportHeader {
  return { dramatis, version: VERSION, id, exportedAt };
}

/** Throws `INVALID_INPUT` unless a line is the header of a file of this kind. */
export function checkHeader(line: unknown, kind: ExportHeader["dramatis"]): void {
  const header = z.looseObject({ dramatis: z.literal(kind), version: z.literal(VERSION), id: z.string() });
  validate(header, line, "/1", `The header of a file of ${kind === "agent" ? "an agent" : "a conversation"}`);
}

export function checkPart(part: unknown): ImportPart {
  return validate(partSchema, part, "");
}

/** Runs a function that reads a line. Its errors name the line. */
export function atLine<Value>(number: number, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    throw inLine(number, error);
  }
}

export function inLine(number: number, error: unknown): unknown {
  if (error instanceof DramatisError && error.retriable) return error;
  const why = error instanceof DramatisError ? error.message : "It does not have the format of an export.";
  const code = hasCode(error, "TOO_LARGE") ? "TOO_LARGE" : "INVALID_INPUT";
  return new DramatisError(code, `Line ${number}: ${why}`, {
    errors: [{ path: `/${number}`, message: why }],
    cause: error,
  });
}

/** Parses a line. Throws `INVALID_JSON`. */
export function parseLine(text: string): Record<string, unknown> {
  const value = parseJsonText(text, "The line", MAX_LINE_DEPTH);
  return validate(z.record(z.string(), z.unknown()), value, "", "The line");
}
