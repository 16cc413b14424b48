/**
 * Request bodies: from bytes to validated JSON.
 *
 * BODY-1  Memory holds at most the limit of a body, also if `Content-Length` is wrong.
 * BODY-2  A parsed body nests at most 64 deep and contains well-formed Unicode only.
 */
import type { Context } from "hono";
import type { z } from "zod";
import { bytesOf } from "../../shared/byte-buffer.ts";
import { tooLarge } from "../../shared/errors.ts";
import { parseBody } from "../../shared/json.ts";
import { validate } from "../../shared/validation.ts";
import type { HttpEnv } from "./context.ts";

/**
 * Reads and validates the body of a request, of at most `maxBytes` and the configured limit.
 * Throws `TOO_LARGE`, `INVALID_JSON` or `INVALID_INPUT`.
 */
export async function readBody<Schema extends z.ZodType>(
  { req, var: { maxBodyBytes } }: Context<HttpEnv>,
  schema: Schema,
  maxBytes = maxBodyBytes,
): Promise<z.output<Schema>> {
  return validate(schema, await readJson(req.raw, Math.min(maxBodyBytes, maxBytes)));
}

/** Reads and validates a body that may be absent or empty: it counts as `{}`. Throws as `readBody`. */
export async function readOptionalBody<Schema extends z.ZodType>(
  { req, var: { maxBodyBytes } }: Context<HttpEnv>,
  schema: Schema,
): Promise<z.output<Schema>> {
  const bytes = await readBytes(req.raw, maxBodyBytes);
  return validate(schema, bytes.length === 0 ? {} : parseBody(bytes));
}

/** Reads the body as JSON. Throws `TOO_LARGE`, `INVALID_JSON` or, for lone surrogates, `INVALID_INPUT`. */
export async function readJson(request: Request, maxBytes: number): Promise<unknown> {
  return parseBody(await readBytes(request, maxBytes));
}

/** Reads the bytes of the body. Throws `TOO_LARGE`. */
export async function readBytes(request: Request, maxBytes: number): Promise<Uint8Array> {
  const tooLong = () => tooLarge(`The body may have at most ${maxBytes} bytes.`);
  if (Number(request.headers.get("content-length") ?? 0) > maxBytes) throw tooLong();
  return bytesOf(request.body, maxBytes, tooLong);
}
