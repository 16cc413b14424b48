/**
 * Request bodies: bytes to JSON that the rest of the code may trust in form.
 *
 * BODY-1  Never more than the bound is held in memory, whatever a header claims.
 * BODY-2  What comes out nests at most 64 deep and holds well-formed Unicode only.
 */
import { DramatisError } from "../shared/errors.ts";
import { MAX_BODY_BYTES } from "../shared/limits.ts";
import { jsonPointer } from "../shared/validation.ts";

const MAX_DEPTH = 64;

/** The body as JSON. Throws `TOO_LARGE`, `INVALID_JSON` or, for lone surrogates, `INVALID_INPUT`. */
export async function readJson(request: Request, maxBytes = MAX_BODY_BYTES): Promise<unknown> {
  return parseJson(await readBytes(request, maxBytes));
}

/** UTF-8 bytes as JSON; throws as `readJson` does. */
export function parseJson(bytes: Uint8Array): unknown {
  const value = parseText(decode(bytes));
  const malformed = findMalformed(value, 1);
  if (malformed === null) return value;
  throw new DramatisError("INVALID_INPUT", "Text must be well-formed Unicode: no lone surrogates.", {
    errors: [{ path: jsonPointer(malformed), message: "Must be well-formed Unicode." }],
  });
}

async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLarge(maxBytes);
  const chunks: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop cancels the stream.
  for await (const chunk of request.body ?? []) {
    length += chunk.byteLength;
    if (length > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.byteLength;
  }
  return bytes;
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch (cause) {
    throw new DramatisError("INVALID_JSON", "The body is not valid UTF-8.", { cause });
  }
}

function parseText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    const detail = text.trim() === "" ? "The body is empty; send JSON." : "The body is not valid JSON.";
    throw new DramatisError("INVALID_JSON", detail, { cause });
  }
}

/** The path of the first string or key with a lone surrogate. Recursion is safe: it ends at the greatest depth. */
function findMalformed(value: unknown, depth: number): PropertyKey[] | null {
  if (typeof value === "string") return value.isWellFormed() ? null : [];
  if (typeof value !== "object" || value === null) return null;
  if (depth > MAX_DEPTH) {
    throw new DramatisError("INVALID_JSON", `The body nests deeper than ${MAX_DEPTH} levels.`);
  }
  for (const [key, member] of Object.entries(value)) {
    if (!key.isWellFormed()) return [key.toWellFormed()];
    const path = findMalformed(member, depth + 1);
    if (path !== null) return [key, ...path];
  }
  return null;
}

function tooLarge(maxBytes: number): DramatisError {
  return new DramatisError("TOO_LARGE", `The body may have at most ${maxBytes} bytes.`);
}
