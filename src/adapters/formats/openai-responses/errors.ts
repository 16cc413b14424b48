/** Errors that the Responses API reports inside a reply. Pure. */

import type { ErrorCategory, ModelError } from "../../../model/error.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { inBandError, modelError } from "../../errors/model-errors.ts";

/** Codes that other providers do not have. */
const CATEGORY_BY_CODE: ReadonlyMap<unknown, ErrorCategory> = new Map([
  ["server_error", "transient"],
  ["vector_store_timeout", "timeout"],
  ["invalid_prompt", "validation"],
  ["data_residency_mismatch", "validation"],
  ["bio_policy", "safety"],
  ["misalignment_policy_violation", "safety"],
  ["image_content_policy_violation", "safety"],
  ["content_policy_violation", "safety"],
]);

/** Reads the error of a failed response, or of an event `error`. */
export function responsesError(error: JsonObject): ModelError {
  // The type of an event `error` is not the type of its error.
  const { type, ...event } = error;
  const known = inBandError("openai-responses", type === "error" ? event : error);
  const category = CATEGORY_BY_CODE.get(error.code) ?? categoryOfImage(error.code);
  return category === undefined ? known : modelError("openai-responses", category, known.message);
}

/** An image that was refused once will be refused again. */
function categoryOfImage(code: unknown): ErrorCategory | undefined {
  return typeof code === "string" && code.includes("image") ? "validation" : undefined;
}
