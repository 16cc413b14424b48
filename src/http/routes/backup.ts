/**
 * Exports and imports over HTTP.
 *
 * BACKUP-6  An import holds one part of the body in memory: at most 512 KiB of lines, or one longer line of at most 16 MiB.
 */
import { ulid } from "ulid";
import { z } from "zod";
import type { ImportPart } from "../../protocol/data-api.ts";
import { sendParts } from "../../protocol/import-parts.ts";
import { DramatisError, invalid, tooLarge } from "../../shared/errors.ts";
import { HEADERS } from "../base/problem.ts";
import type { ApiOperation } from "../openapi/operation.ts";

/** Characters of a line of a file. */
const MAX_LINE = 16 * 1024 * 1024;

type Described = Pick<
  ApiOperation,
  "id" | "path" | "tag" | "summary" | "description" | "params" | "errors" | "permit"
>;

export function exportOperation<const Operation extends Described>(operation: Operation) {
  const description = "The file: one JSON text per line.";
  return {
    method: "get",
    ...operation,
    answers: [{ status: 200, description, type: "application/octet-stream" }],
  } as const;
}

/** Describes an import operation. `idDescription` describes the query parameter `id`. */
export function importOperation({
  idDescription,
  created,
  ...operation
}: Omit<Described, "params"> & { idDescription: string; created: z.ZodType }) {
  return {
    method: "post",
    ...operation,
    query: z.object({ id: z.string().describe(idDescription).exactOptional() }),
    answers: [{ status: 201, description: "What was imported.", body: created, location: true }],
    errors: [...(operation.errors ?? []), "INVALID_JSON", "INVALID_INPUT", "TOO_LARGE"],
  } as const;
}

export function exported(lines: ReadableStream<Uint8Array>): Response {
  return new Response(lines, { headers: { ...HEADERS, "content-type": "application/x-ndjson" } });
}

/**
 * Passes the lines of a body to `take` in parts. Returns the answer to the last part. Throws `TOO_LARGE` for a long line, `INVALID_INPUT` for an empty
 * body, and errors of `take`.
 */
export async function importFile<End>(
  { body }: Request,
  take: (part: ImportPart) => Promise<End>,
): Promise<End | undefined> {
  let end: End | undefined;
  const sent = await sendParts(linesOf(body), ulid(), async (part) => {
    end = await take(part);
  });
  if (sent === 0) throw invalid("The body is empty. Send the file of an export.");
  return end;
}

async function* linesOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<string> {
  let rest = "";
  let count = 1;
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false });
  const decoded = (chunk?: Uint8Array) => {
    try {
      return chunk === undefined ? decoder.decode() : decoder.decode(chunk, { stream: true });
    } catch (cause) {
      throw new DramatisError("INVALID_JSON", "The body is not valid UTF-8.", { cause });
    }
  };
  for await (const chunk of body ?? []) {
    const lines = (rest + decoded(chunk)).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > MAX_LINE)
      throw tooLarge(`Line ${count + lines.length} has more than ${MAX_LINE} characters.`);
    count += lines.length;
    yield* lines.filter((line) => line !== "");
  }
  const last = rest + decoded();
  if (last !== "") yield last;
}
