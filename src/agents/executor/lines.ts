/**
 * Reports as bytes: one JSON text a line. The reader takes chunks cut anywhere, within a character too.
 *
 * LINES-1  What is read equals what was written, however the bytes were cut.
 */
import { z } from "zod";
import type { ExecutorReport } from "../../protocol/executor-api.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { Json } from "../../shared/json.ts";

const operationId = z.string().min(1);

/** What `JSON.parse` gave is JSON already, and zod's own JSON type would drop a member called `__proto__`. */
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
          code: z.enum([
            "EXECUTION_FAILED",
            "TIMEOUT",
            "NOT_FOUND",
            "PERMISSION_DENIED",
            "INVALID_INPUT",
            "AGENT_DECLINED",
            "INTERNAL_ERROR",
          ]),
          message: z.string(),
          retriable: z.boolean(),
        }),
      ),
    }),
  }),
  z.strictObject({ operationId, progress: json }),
]);

/**
 * A stream of bytes, pulled from the reports that `start` gives. Cancelling it aborts the signal that `start` got: a
 * generator that waits for a report would not notice the end of its iteration before that report came.
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
      // SAFETY: only a byte stream's controller has it; a pending read of a closed byte stream needs it to end.
      (controller as ReadableByteStreamController).byobRequest?.respond(0);
    },
    cancel() {
      cancelled.abort();
    },
  });
}

/** The reports of a stream. A line that is no report is `INTERNAL_ERROR`. Leaving the iteration cancels the stream. */
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
    throw new DramatisError("UNAVAILABLE", "The executor's answer broke off.", { retriable: true });
}

function readLine(line: string): ExecutorReport {
  try {
    return reportSchema.parse(JSON.parse(line));
  } catch (cause) {
    throw new DramatisError("INTERNAL_ERROR", "The executor answered with a line that is no report.", {
      cause,
    });
  }
}
