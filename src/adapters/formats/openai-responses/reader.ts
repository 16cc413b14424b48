/**
 * Reads one response of the Responses API from its events, or from the whole response in one payload. Events of unknown
 * types are passed over.
 */
import { z } from "zod";
import type { ModelError } from "../../../model/error.ts";
import type { FinishReason, ModelDelta } from "../../../model/reply.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/json.ts";
import { modelError } from "../../errors/model-errors.ts";
import type { ReplyReader } from "../common/reply-stream.ts";
import { responsesError } from "./errors.ts";
import { ResponsesOutput } from "./output.ts";
import { responsesUsage } from "./usage.ts";

const PROVIDER = "openai-responses";

const place = z.number().int().nonnegative().catch(0);
const eventSchema = z.object({
  output_index: place,
  content_index: place,
  summary_index: place,
  delta: z.string().catch(""),
});

export class ResponsesReader implements ReplyReader {
  readonly #output = new ResponsesOutput();
  #finish: FinishReason | undefined;
  #isCutOff = false;
  #messageId: string | undefined;

  get finish(): FinishReason | undefined {
    return this.#finish;
  }

  get isOver(): boolean {
    return this.#finish !== undefined;
  }

  read(event: JsonObject): ModelDelta[] | ModelError | undefined {
    if (typeof event.type === "string") return this.#take(event.type, event);
    if (event.object === "response" || Array.isArray(event.output)) return this.#whole(event);
    return isJsonObject(event.error) ? responsesError(event.error) : undefined;
  }

  close(): ModelDelta[] {
    const parts = this.#isCutOff ? undefined : this.#output.native();
    return parts === undefined ? [] : [{ type: "native", parts }];
  }

  #take(type: string, event: JsonObject): ModelDelta[] | ModelError | undefined {
    const { output_index: at, content_index: part, summary_index: summary, delta } = eventSchema.parse(event);
    switch (type) {
      case "response.created":
      case "response.in_progress":
        return this.#identify(event.response);
      case "response.output_item.added":
        return isJsonObject(event.item) ? this.#output.begin(at, event.item) : [];
      case "response.output_item.done":
        return isJsonObject(event.item) ? this.#output.finish(at, event.item) : [];
      case "response.output_text.delta":
        return this.#output.text(at, part, delta, false);
      case "response.refusal.delta":
        return this.#output.text(at, part, delta, true);
      case "response.reasoning_summary_text.delta":
        return this.#output.reasoning(at, `summary ${summary}`, delta);
      case "response.reasoning_text.delta":
        return this.#output.reasoning(at, `content ${part}`, delta);
      case "response.function_call_arguments.delta":
        return this.#output.arguments(at, delta);
      case "response.function_call_arguments.done":
        return this.#output.wholeArguments(at, event.arguments);
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled":
        return isJsonObject(event.response)
          ? this.#whole({ status: type.slice("response.".length), ...event.response })
          : undefined;
      case "error":
        return responsesError(isJsonObject(event.error) ? event.error : event);
      default:
        return [];
    }
  }

  /** The response as it ends, with all of its items. */
  #whole(response: JsonObject): ModelDelta[] | ModelError {
    const { status, error, output, usage, incomplete_details: details } = response;
    const id = this.#identify(response);
    switch (status) {
      case undefined:
      case "completed":
      case "incomplete":
        break;
      case "cancelled":
        return modelError(PROVIDER, "canceled", "The provider cancelled its reply.");
      case "failed":
        return responsesError(isJsonObject(error) ? error : {});
      default:
        return modelError(
          PROVIDER,
          "validation",
          "The reply is not there yet: do not ask for it in the background.",
        );
    }
    // Places of streamed items may have gaps that the list of the whole has not, so the two are not matched.
    const items = Array.isArray(output) && !this.#output.hasItems ? output : [];
    const rest = items.flatMap((item, at) => (isJsonObject(item) ? this.#output.finish(at, item) : []));
    const counted = responsesUsage(usage);
    this.#isCutOff = status === "incomplete";
    this.#finish = this.#isCutOff ? incompleteReason(details) : this.#reason();
    return [...id, ...rest, ...(counted === undefined ? [] : [{ type: "usage", usage: counted } as const])];
  }

  #reason(): FinishReason {
    if (this.#output.hasCalls) return "tool_calls";
    return this.#output.isWaiting ? "other" : "stop";
  }

  #identify(response: Json | undefined): ModelDelta[] {
    if (this.#messageId !== undefined || !isJsonObject(response)) return [];
    if (typeof response.id !== "string" || response.id === "") return [];
    this.#messageId = response.id;
    return [{ type: "message-id", id: response.id }];
  }
}

function incompleteReason(details: Json | undefined): FinishReason {
  switch (isJsonObject(details) ? details.reason : undefined) {
    case "max_output_tokens":
      return "length";
    case "content_filter":
      return "content_filter";
    default:
      return "other";
  }
}
