/**
 * Request bodies: bytes to JSON that the rest of the code may trust in form.
 *
 * BODY-1  Never more than the bound is held in memory, whatever a header claims.
 * BODY-2  What comes out nests at most 64 deep and holds well-formed Unicode only.
 */
import { DramatisError } from "../../shared/errors.ts";
import { checkJson, parseJsonText } from "../../shared/json-text.ts";
import { MAX_BODY_BYTES } from "./limits.ts";

/** The body as JSON. Throws `TOO_LARGE`, `INVALID_JSON` or, for lone surrogates, `INVALID_INPUT`. */
export async function readJson(request: Request, maxBytes = MAX_BODY_BYTES): Promise<unknown> {
  return parseBody(await readBytes(request, maxBytes));
}

/** UTF-8 bytes as JSON; throws as `readJson` does. */
export function parseBody(bytes: Uint8Array): unknown {
  const value = parseJsonText(decode(bytes), "The body");
  checkJson(value, "The body");
  return value;
}

/** The body as it is. Throws `TOO_LARGE`. */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
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

function tooLarge(maxBytes: number): DramatisError {
  return new DramatisError("TOO_LARGE", `The body may have at most ${maxBytes} bytes.`);
}
