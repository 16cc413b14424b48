/**
 * The last step of every format: a request with well-formed texts.
 *
 * UNICODE-1  Each lone surrogate in a request becomes U+FFFD: in values and in names of members, at any depth. The gateway does the same for
 *            requests that no format has built.
 */
import type { FormatAdapter } from "../../../model/format-adapter.ts";
import { type JsonObject, wellFormed } from "../../../shared/json.ts";
import { carryCalls } from "./names.ts";

/** Returns the format with well-formed texts in its requests. */
export function wellFormedFormat(format: FormatAdapter): FormatAdapter {
  return {
    ...format,
    buildRequest: (...args) => sound(format.buildRequest(...args)),
    extend: (...args) => sound(format.extend(...args)),
    choose: (...args) => sound(format.choose(...args)),
  };
}

function sound(request: JsonObject): JsonObject {
  return carryCalls(request, wellFormed(request));
}
