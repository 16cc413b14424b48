/**
 * An answer as the events of a streamed response. Pure.
 *
 * OAI-6  `sequence_number` counts from 0 without gaps; each item is added before and done after everything of it, and the
 *        items of the last event's response are those that were done.
 */
import type { WireError } from "../../protocol/views.ts";
import type { AnswerEvent, AnswerPart, ClientCall } from "../answer.ts";
import { streamError } from "./errors.ts";
import type { AnswerAddress } from "./ids.ts";
import {
  callItem,
  messageItem,
  type OutputItem,
  type OutputText,
  outputText,
  type ResponseObject,
  responseObject,
} from "./response-object.ts";

type Unnumbered =
  | {
      type:
        | "response.created"
        | "response.in_progress"
        | "response.completed"
        | "response.incomplete"
        | "response.failed";
      response: ResponseObject;
    }
  | {
      type: "response.output_item.added" | "response.output_item.done";
      output_index: number;
      item: OutputItem;
    }
  | ({ type: "response.content_part.added" | "response.content_part.done"; part: OutputText } & TextPlace)
  | ({ type: "response.output_text.delta"; delta: string; logprobs: [] } & TextPlace)
  | ({ type: "response.output_text.done"; text: string; logprobs: [] } & TextPlace)
  | ({ type: "response.function_call_arguments.delta"; delta: string } & Place)
  | ({ type: "response.function_call_arguments.done"; name: string; arguments: string } & Place)
  | { type: "error"; code: string; message: string; param: null };

interface Place {
  item_id: string;
  output_index: number;
}

interface TextPlace extends Place {
  content_index: 0;
}

export type ResponseEvent = Unnumbered & { sequence_number: number };

export class ResponseEventEncoder {
  readonly #address: AnswerAddress;
  readonly #model: string;
  #number = 0;
  #items = 0;
  /** The message in progress. */
  #messageId: string | null = null;

  constructor(address: AnswerAddress, model: string) {
    this.#address = address;
    this.#model = model;
  }

  /** The events before all others. */
  start(): ResponseEvent[] {
    const response = responseObject(this.#address, this.#model, null);
    return this.#numbered([
      { type: "response.created", response },
      { type: "response.in_progress", response },
    ]);
  }

  push(event: AnswerEvent): ResponseEvent[] {
    switch (event.type) {
      case "text":
        return this.#numbered([...this.#open(event.messageId), this.#delta(event.text)]);
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

  /** The event after all others, with the whole response. */
  end(part: AnswerPart): ResponseEvent[] {
    const response = responseObject(this.#address, this.#model, part);
    const { status } = response;
    const type = status === "failed" || status === "incomplete" ? status : "completed";
    return this.#numbered([{ type: `response.${type}`, response }]);
  }

  /** The end of a stream that breaks off before its answer is complete. */
  fail(error: Pick<WireError, "code" | "message">): ResponseEvent[] {
    const { code, message } = streamError(error);
    return this.#numbered([{ type: "error", code, message, param: null }]);
  }

  #open(messageId: string): Unnumbered[] {
    if (this.#messageId === messageId) return [];
    this.#messageId = messageId;
    const item = messageItem(this.#address, this.#items, null);
    return [
      { type: "response.output_item.added", output_index: this.#items, item },
      { type: "response.content_part.added", ...this.#place(item.id), part: outputText("") },
    ];
  }

  #delta(delta: string): Unnumbered {
    const { id } = messageItem(this.#address, this.#items, null);
    return { type: "response.output_text.delta", ...this.#place(id), delta, logprobs: [] };
  }

  #close(said: { content: string; isInterim: boolean }): Unnumbered[] {
    const item = messageItem(this.#address, this.#items, said);
    const place = this.#place(item.id);
    const { content: text } = said;
    this.#messageId = null;
    this.#items += 1;
    return [
      { type: "response.output_text.done", ...place, text, logprobs: [] },
      { type: "response.content_part.done", ...place, part: outputText(text) },
      { type: "response.output_item.done", output_index: place.output_index, item },
    ];
  }

  #call(call: ClientCall): Unnumbered[] {
    const item = callItem(this.#address, this.#items, call);
    const place = { item_id: item.id, output_index: this.#items };
    this.#items += 1;
    const { name, arguments: text } = item;
    return [
      {
        type: "response.output_item.added",
        output_index: place.output_index,
        item: { ...item, status: "in_progress", arguments: "" },
      },
      { type: "response.function_call_arguments.delta", ...place, delta: text },
      { type: "response.function_call_arguments.done", ...place, name, arguments: text },
      { type: "response.output_item.done", output_index: place.output_index, item },
    ];
  }

  #place(itemId: string): TextPlace {
    return { item_id: itemId, output_index: this.#items, content_index: 0 };
  }

  #numbered(events: readonly Unnumbered[]): ResponseEvent[] {
    return events.map((event) => {
      const numbered = { ...event, sequence_number: this.#number };
      this.#number += 1;
      return numbered;
    });
  }
}
