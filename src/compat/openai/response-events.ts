/**
 * An answer as the events of a streamed response. Pure.
 *
 * OAI-6  `sequence_number` counts from 0 without gaps. The events of an item stand between its `added` and its `done`. The
 *        response of the last event has exactly the items that are done.
 */
import type { WireError } from "../../protocol/move-schemas.ts";
import type { AnswerEncoder, AnswerEvent, ClientCall, TurnAnswer } from "../answer.ts";
import { type OpenAiError, streamError } from "./errors.ts";
import { type AnswerAddress, itemId } from "./ids.ts";
import {
  callItem,
  messageItem,
  type OutputItem,
  outputText,
  type ResponseObject,
  responseObject,
} from "./response-object.ts";

/** An event without its number. */
type Unnumbered =
  | { type: "response.created" | "response.in_progress"; response: ResponseObject }
  | { type: `response.${"completed" | "incomplete" | "failed"}`; response: ResponseObject }
  | {
      type: `response.output_item.${"added" | "done"}`;
      output_index: number;
      item: OutputItem;
    }
  | ({ type: `response.content_part.${"added" | "done"}`; part: ReturnType<typeof outputText> } & TextPlace)
  | ({ type: "response.output_text.delta"; delta: string; logprobs: [] } & TextPlace)
  | ({ type: "response.output_text.done"; text: string; logprobs: [] } & TextPlace)
  | ({ type: "response.function_call_arguments.delta"; delta: string } & Place)
  | ({ type: "response.function_call_arguments.done"; name: string; arguments: string } & Place)
  | { type: "error"; code: string; message: string; param: null; error: OpenAiError };

interface Place {
  item_id: string;
  output_index: number;
}

interface TextPlace extends Place {
  content_index: 0;
}

type ResponseEvent = Unnumbered & { sequence_number: number };

export class ResponseEventEncoder implements AnswerEncoder<ResponseEvent> {
  #number = 0;
  #items = 0;
  #messageId: string | null = null;

  constructor(
    private readonly address: AnswerAddress,
    private readonly model: string,
  ) {}

  start(): ResponseEvent[] {
    const response = responseObject(this.address, this.model, null);
    return this.#numbered([
      { type: "response.created", response },
      { type: "response.in_progress", response },
    ]);
  }

  push(event: AnswerEvent): ResponseEvent[] {
    switch (event.type) {
      case "text":
        return this.#numbered([
          ...this.#open(event.messageId),
          { type: "response.output_text.delta", ...this.#place(), delta: event.text, logprobs: [] },
        ]);
      case "message":
        return this.#numbered([...this.#open(event.messageId), ...this.#close(event)]);
      case "call":
        return this.#numbered(this.#call(event.call));
      case "end":
      case "failed":
        return [];
      default:
        return event satisfies never;
    }
  }

  end(answer: TurnAnswer): ResponseEvent[] {
    const response = responseObject(this.address, this.model, answer);
    const { status } = response;
    // The protocol has no event for a cancelled response. Clients take the text that they got of an incomplete one.
    const type = status === "cancelled" ? "incomplete" : status === "in_progress" ? "completed" : status;
    return this.#numbered([{ type: `response.${type}`, response }]);
  }

  fail(error: Pick<WireError, "code" | "message">): ResponseEvent[] {
    const details = streamError(error);
    const { code, message } = details;
    // OpenAI has the members in the event, and Open Responses has them in `error`.
    return this.#numbered([{ type: "error", code, message, param: null, error: details }]);
  }

  #open(messageId: string): Unnumbered[] {
    if (this.#messageId === messageId) return [];
    this.#messageId = messageId;
    const item = messageItem(this.address, this.#items, null);
    return [
      { type: "response.output_item.added", output_index: this.#items, item },
      { type: "response.content_part.added", ...this.#place(), part: outputText("") },
    ];
  }

  #close(message: TurnAnswer["messages"][number]): Unnumbered[] {
    const item = messageItem(this.address, this.#items, message);
    const place = this.#place();
    const { content: text } = message;
    this.#messageId = null;
    this.#items += 1;
    return [
      { type: "response.output_text.done", ...place, text, logprobs: [] },
      { type: "response.content_part.done", ...place, part: outputText(text) },
      { type: "response.output_item.done", output_index: place.output_index, item },
    ];
  }

  #place(): TextPlace {
    const item_id = itemId("msg", this.address, this.#items);
    return { item_id, output_index: this.#items, content_index: 0 };
  }

  #call(call: ClientCall): Unnumbered[] {
    const item = callItem(this.address, this.#items, call);
    const output_index = this.#items;
    const place = { item_id: item.id, output_index };
    const begun = { ...item, status: "in_progress", arguments: "" };
    const { name, arguments: text } = item;
    this.#items += 1;
    return [
      { type: "response.output_item.added", output_index, item: begun },
      { type: "response.function_call_arguments.delta", ...place, delta: text },
      { type: "response.function_call_arguments.done", ...place, name, arguments: text },
      { type: "response.output_item.done", output_index, item },
    ];
  }

  #numbered(events: readonly Unnumbered[]): ResponseEvent[] {
    return events.map((event) => {
      const numbered = { ...event, sequence_number: this.#number };
      this.#number += 1;
      return numbered;
    });
  }
}
