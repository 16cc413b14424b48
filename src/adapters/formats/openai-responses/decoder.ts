/**
 * Decodes one response of the Responses API: the events of a stream, or the whole response as one payload. Events of
 * unknown types are ignored.
 */
import type { ErrorCategory, ModelError } from "../../../model/error.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { inBandError, modelError } from "../../errors/model-errors.ts";
import { ReplyDecoder } from "../common/decoder.ts";
import { membersOf, objects, stringOf } from "../common/json.ts";
import { nativeDeltas } from "../common/native.ts";
import { openaiUsage, usageDeltas } from "../common/usage.ts";
import { ResponsesReplyParts } from "./responses-parts.ts";

/** Keys that a plain text or call has too. */
const IDENTIFYING = ["id", "status", "refusal"];

export class ResponsesDecoder extends ReplyDecoder {
  readonly #parts = new ResponsesReplyParts();
  protected finish: FinishReason | undefined;
  #isCutOff = false;

  protected read(event: JsonObject): ModelDelta[] | ModelError | undefined {
    if (typeof event.type === "string") return this.#take(event.type, event);
    if (event.object === "response" || Array.isArray(event.output)) return this.#complete(event);
    return isJsonObject(event.error) ? responsesError(event.error) : undefined;
  }

  protected override close(): ModelDelta[] {
    return this.#isCutOff ? [] : nativeDeltas(this.#parts.parts(), IDENTIFYING);
  }

  #take(type: string, event: JsonObject): ModelDelta[] | ModelError | undefined {
    const { item, response } = event;
    const place = placeOf(event.output_index);
    const delta = stringOf(event.delta);
    switch (type) {
      case "response.created":
      case "response.in_progress":
        if (isJsonObject(response)) this.#identify(response);
        return [];
      case "response.output_item.added":
        return isJsonObject(item) ? this.#parts.begin(place, item) : [];
      case "response.output_item.done":
        return isJsonObject(item) ? this.#parts.finish(place, item) : [];
      case "response.output_text.delta":
        return this.#parts.text(place, placeOf(event.content_index), delta, false);
      case "response.refusal.delta":
        return this.#parts.text(place, placeOf(event.content_index), delta, true);
      case "response.reasoning_summary_text.delta":
        return this.#parts.reasoning(place, `summary ${placeOf(event.summary_index)}`, delta);
      case "response.reasoning_text.delta":
        return this.#parts.reasoning(place, `content ${placeOf(event.content_index)}`, delta);
      case "response.function_call_arguments.delta":
        return this.#parts.arguments(place, delta);
      case "response.function_call_arguments.done":
        return this.#parts.wholeArguments(place, event.arguments);
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled":
        return isJsonObject(response)
          ? this.#complete({ status: type.slice("response.".length), ...response })
          : undefined;
      case "error":
        return responsesError(isJsonObject(event.error) ? event.error : event);
      default:
        return [];
    }
  }

  /** Takes the response as it ends, with all of its items. */
  #complete(response: JsonObject): ModelDelta[] | ModelError {
    const { status, error } = response;
    this.#identify(response);
    switch (status) {
      case undefined:
      case "completed":
      case "incomplete":
        break;
      case "cancelled":
        return this.error("canceled", "The provider cancelled its reply.");
      case "failed":
        return responsesError(membersOf(error));
      default:
        return this.error("validation", "The response is not finished: remove the parameter `background`.");
    }
    // The lists are not matched: places of streamed items may have gaps, the whole list has no gaps.
    const rest = this.#parts.hasItems
      ? []
      : objects(response.output).flatMap((item, place) => this.#parts.finish(place, item));
    this.#isCutOff = status === "incomplete";
    this.finish = this.#isCutOff ? incompleteReason(response.incomplete_details) : this.#completeReason();
    this.isOver = true;
    return [...rest, ...usageDeltas(openaiUsage(response.usage))];
  }

  #completeReason(): FinishReason {
    if (this.#parts.hasCalls) return "tool_calls";
    return this.#parts.isWaiting ? "other" : "stop";
  }

  #identify({ id }: JsonObject): void {
    this.messageId ||= stringOf(id);
  }
}

function placeOf(value: Json | undefined): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

function incompleteReason(details: Json | undefined): FinishReason {
  switch (membersOf(details).reason) {
    case "max_output_tokens":
      return "length";
    case "content_filter":
      return "content_filter";
    default:
      return "other";
  }
}

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

function responsesError(error: JsonObject): ModelError {
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
