/**
 * Decodes one response of the Responses API from its events, or from the whole response in one payload. The rules are
 * those of `chat-stream.ts` (STREAM-1 to STREAM-4); events of unknown types are passed over.
 */
import { z } from "zod";
import { isJsonObject, type Json, type JsonObject } from "../../shared/json.ts";
import { DONE, parseObject } from "../chat-stream.ts";
import { modelError } from "../errors.ts";
import type { FinishReason, ModelDelta, ModelError, StreamDecoder } from "../types.ts";
import { responsesError } from "./errors.ts";
import { ResponsesOutput } from "./output.ts";
import { readResponsesUsage } from "./usage.ts";

const PROVIDER = "openai-responses";

const place = z.number().int().nonnegative().catch(0);
const eventSchema = z.object({
  output_index: place,
  content_index: place,
  summary_index: place,
  delta: z.string().catch(""),
});

export class ResponsesStream implements StreamDecoder {
  readonly #output = new ResponsesOutput();
  #state: "open" | "ended" | "failed" = "open";
  #messageId: string | undefined;

  push(data: string): ModelDelta[] {
    const payload = data.trim();
    if (this.#state !== "open" || payload === "") return [];
    if (payload === DONE) return this.end();
    const event = parseObject(payload);
    if (event === undefined) return this.#fail("The provider sent something that is not a JSON object.");
    if (typeof event.type === "string") return this.#take(event.type, event);
    if (event.object === "response" || Array.isArray(event.output)) return this.#whole(event);
    if (isJsonObject(event.error)) return this.#fail(responsesError(event.error));
    return this.#fail("The provider sent an event of an unknown shape.");
  }

  end(): ModelDelta[] {
    return this.#state === "open" ? this.#fail("The reply ended before it was complete.") : [];
  }

  #take(type: string, event: JsonObject): ModelDelta[] {
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
          : this.#fail("The provider ended its reply without saying how.");
      case "error":
        return this.#fail(responsesError(isJsonObject(event.error) ? event.error : event));
      default:
        return [];
    }
  }

  /** The response as it ends, with all of its items. */
  #whole(response: JsonObject): ModelDelta[] {
    const { status, error, output, usage, incomplete_details: details } = response;
    const id = this.#identify(response);
    switch (status) {
      case undefined:
      case "completed":
      case "incomplete":
        break;
      case "cancelled":
        return this.#fail(modelError(PROVIDER, "canceled", "The provider cancelled its reply."));
      case "failed":
        return this.#fail(responsesError(isJsonObject(error) ? error : {}));
      default:
        return this.#fail(
          modelError(
            PROVIDER,
            "validation",
            "The reply is not there yet: do not ask for it in the background.",
          ),
        );
    }
    // Places of streamed items may have gaps that the list of the whole has not, so the two are not matched.
    const items = Array.isArray(output) && !this.#output.hasItems ? output : [];
    const rest = items.flatMap((item, at) => (isJsonObject(item) ? this.#output.finish(at, item) : []));
    const counted = readResponsesUsage(usage);
    const parts = status === "incomplete" ? undefined : this.#output.native();
    this.#state = "ended";
    return [
      ...id,
      ...rest,
      ...(counted === undefined ? [] : [{ type: "usage", usage: counted } as const]),
      ...(parts === undefined ? [] : [{ type: "native", parts } as const]),
      { type: "finish", reason: status === "incomplete" ? incompleteReason(details) : this.#reason() },
    ];
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

  #fail(reason: string | ModelError): ModelDelta[] {
    this.#state = "failed";
    const error = typeof reason === "string" ? modelError(PROVIDER, "transient", reason) : reason;
    return [{ type: "error", error }];
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
