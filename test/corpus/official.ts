/** Decodes a provider's stream with the official SDKs, as the reference for our decoders. */

import type Anthropic from "@anthropic-ai/sdk";
import { MessageStream } from "@anthropic-ai/sdk/lib/MessageStream";
import { GenerateContentResponse } from "@google/genai";
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import type { ChatCompletion } from "openai/resources/chat/completions";
import type { ResponseStreamEvent, Response as ResponsesReply } from "openai/resources/responses/responses";
import type { Recording } from "./recordings.ts";

/** The content of a reply that can be compared. */
export interface Essence {
  text: string;
  /** The other text of a recording if its pieces and its complete text differ. */
  otherText?: string;
  calls: { name: string; arguments: unknown }[];
  /** Set if the SDK leaves arguments in pieces: they cannot be compared. */
  inPieces?: true;
}

/**
 * The essence of a recording that is a reply; `undefined` for an error, a stream that does not end, and one with an
 * event that is not JSON.
 */
export async function officialEssence({ provider, payloads }: Recording): Promise<Essence | undefined> {
  if (!payloads.every(isJson)) return undefined;
  switch (provider) {
    case "openai":
      return ofChat(payloads);
    case "openai-responses":
      return ofResponses(payloads);
    case "anthropic":
      return ofAnthropic(payloads);
    case "gemini":
      return ofGemini(payloads);
    default:
      throw new Error(`There are no recordings of ${provider}.`);
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function lines(payloads: readonly string[]): ReadableStream {
  return new Blob(payloads.map((payload) => `${payload}\n`)).stream();
}

async function ofChat(payloads: readonly string[]): Promise<Essence | undefined> {
  const first = JSON.parse(payloads[0] ?? "{}");
  if (first.error) return undefined;
  const whole: ChatCompletion =
    first.object === "chat.completion"
      ? first
      : await ChatCompletionStream.fromReadableStream(
          lines(payloads.filter((payload) => JSON.parse(payload).choices?.length > 0)),
        ).finalChatCompletion();
  const message = whole.choices[0]?.message;
  return {
    text: `${message?.content ?? ""}${message?.refusal ?? ""}`,
    calls: (message?.tool_calls ?? []).flatMap((call) =>
      call.type === "function"
        ? [{ name: call.function.name, arguments: JSON.parse(call.function.arguments) }]
        : [],
    ),
  };
}

function ofResponses(payloads: readonly string[]): Essence | undefined {
  const events: (ResponseStreamEvent | ResponsesReply)[] = payloads.map((payload) => JSON.parse(payload));
  const last = events.at(-1);
  const reply =
    last !== undefined && "object" in last
      ? last
      : events.flatMap((event) =>
          "type" in event && (event.type === "response.completed" || event.type === "response.incomplete")
            ? [event.response]
            : [],
        )[0];
  if (reply === undefined || reply.output === undefined) return undefined;
  const pieces = events
    .slice(
      0,
      events.findIndex((event) => "type" in event && /^response\.(completed|incomplete)$/.test(event.type)),
    )
    .flatMap((event) =>
      "type" in event && event.type === "response.output_text.delta" ? [event.delta] : [],
    );
  return { ...essenceOf(reply), otherText: pieces.join("") };
}

function essenceOf(reply: ResponsesReply): Essence {
  return {
    text: reply.output
      .flatMap((item) => (item.type === "message" ? item.content : []))
      .map((part) => (part.type === "output_text" ? part.text : part.refusal))
      .join(""),
    calls: reply.output.flatMap((item) =>
      item.type === "function_call" ? [{ name: item.name, arguments: JSON.parse(item.arguments) }] : [],
    ),
  };
}

async function ofAnthropic(payloads: readonly string[]): Promise<Essence | undefined> {
  const first = JSON.parse(payloads[0] ?? "{}");
  if (first.type === "error") return undefined;
  const message: Anthropic.Message | undefined =
    first.type === "message"
      ? first
      : await MessageStream.fromReadableStream(lines(firstMessage(payloads)))
          .finalMessage()
          .catch(() => undefined);
  if (message === undefined) return undefined;
  return {
    text: message.content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join(""),
    calls: message.content.flatMap((block) =>
      block.type === "tool_use" ? [{ name: block.name, arguments: block.input }] : [],
    ),
  };
}

/** Some recordings hold the streams of several requests, or a repeated beginning. The SDK refuses both forms. */
function firstMessage(payloads: readonly string[]): string[] {
  const end = payloads.findIndex((payload) => JSON.parse(payload).type === "message_stop") + 1;
  return payloads.slice(0, end).filter((payload, index) => payload !== payloads[index - 1]);
}

function ofGemini(payloads: readonly string[]): Essence | undefined {
  const pieces = payloads.map((payload) => Object.assign(new GenerateContentResponse(), JSON.parse(payload)));
  if (pieces.some((piece) => "error" in piece)) return undefined;
  const calls = pieces.flatMap((piece) => piece.functionCalls ?? []);
  return {
    text: pieces.map((piece) => piece.text ?? "").join(""),
    calls: calls.filter(({ name }) => name).map(({ name = "", args = {} }) => ({ name, arguments: args })),
    ...(calls.some(({ partialArgs }) => partialArgs !== undefined) ? { inPieces: true } : {}),
  };
}
