/**
 * Reports as bytes: one JSON text per line.
 *
 * LINES-1  The reports that are read equal those that were written, wherever the bytes are cut, also within a character.
 */
import { z } from "zod";
import { type ExecutorReport, TOOL_ERROR_CODES } from "../../protocol/executor-api.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";

const operationId = z.string().min(1);

/** Zod's own JSON type would drop a member called `__proto__`. */
const json = z.custom<Json>((value) => value !== undefined);

const reportSchema: z.ZodType<ExecutorReport> = z.union([
  z.strictObject({
    operationId,
    result: z.strictObject({
      tool_call_id: z.string(),
      success: z.boolean(),
      result: z.exactOptional(json),
      error: z.exactOptional(
        z.strictObject({
          code: z.enum(TOOL_ERROR_CODES),
          message: z.string(),
          retriable: z.boolean(),
        }),
      ),
    }),
  }),
  z.strictObject({ operationId, progress: json }),
]);

/**
 * Returns a stream of bytes, pulled from the reports of `start`. Cancelling it aborts the signal that `start` got: a
 * generator that waits for a report would notice the end of its iteration only after that report.
 */
export function writeLines(
  start: (cancelled: AbortSignal) => AsyncGenerator<ExecutorReport, void>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const cancelled = new AbortController();
  const reports = start(cancelled.signal);
  return new ReadableStream({
    type: "bytes",
    async pull(controller) {
      const next = await reports.next();
      if (!next.done) return controller.enqueue(encoder.encode(`${JSON.stringify(next.value)}\n`));
      if (cancelled.signal.aborted) return;
      controller.close();
      // SAFETY: only the controller of a byte stream has `byobRequest`, which ends a pending read after `close`.
      (controller as ReadableByteStreamController).byobRequest?.respond(0);
    },
    cancel() {
      cancelled.abort();
    },
  });
}

/**
 * Yields the reports of a stream. Throws `INTERNAL_ERROR` for an invalid line, `UNAVAILABLE` for a truncated one. Leaving
 * the iteration cancels the stream.
 */
export async function* readLines(stream: ReadableStream<Uint8Array>): AsyncGenerator<ExecutorReport, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield readLine(line);
  }
  rest += decoder.decode();
  if (rest !== "")
    throw new DramatisError(
      "UNAVAILABLE",
      "The executor's answer ended in the middle of a line. Look for its error in the Worker's logs.",
      { retriable: true },
    );
}

function readLine(line: string): ExecutorReport {
  try {
    return reportSchema.parse(JSON.parse(line));
  } catch (cause) {
    throw new DramatisError("INTERNAL_ERROR", "The executor sent an invalid report.", { cause });
  }
}
