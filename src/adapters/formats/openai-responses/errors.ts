/** Errors that the Responses API reports inside a reply. Pure. */

import type { ErrorCategory, ModelError } from "../../../model/error.ts";
import type { JsonObject } from "../../../shared/json.ts";
import { inBandError, modelError } from "../../errors/model-errors.ts";

/** Codes that other providers do not have. */
const CATEGORY_BY_CODE: ReadonlyMap<string, ErrorCategory> = new Map([
  ["server_error", "transient"],
  ["vector_store_timeout", "timeout"],
  ["invalid_prompt", "validation"],
  ["data_residency_mismatch", "validation"],
  ["bio_policy", "safety"],
  ["misalignment_policy_violation", "safety"],
  ["image_content_policy_violation", "safety"],
  ["content_policy_violation", "safety"],
]);

/** The error of a failed response, or of an event `error`. */
export function responsesError(error: JsonObject): ModelError {
  const { code } = error;
  // An event says of itself that its type is `error`, which is no type of error.
  const { type, ...rest } = error;
  const known = inBandError("openai-responses", type === "error" ? rest : error);
  const category =
    typeof code === "string" ? (CATEGORY_BY_CODE.get(code) ?? categoryOfMedia(code)) : undefined;
  return category === undefined ? known : modelError("openai-responses", category, known.message);
}

/** Whatever else is wrong with an image will be wrong the next time. */
function categoryOfMedia(code: string): ErrorCategory | undefined {
  return /image/.test(code) ? "validation" : undefined;
}
