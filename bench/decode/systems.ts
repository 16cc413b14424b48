/**
 * The readers of the streams: our gateway and the official SDK of each provider. Both get their bytes from a scripted
 * `fetch`.
 */
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { createModelGateway } from "../../src/adapters/gateway/gateway.ts";
import type { ProviderId } from "../../src/model/profile.ts";
import type { ModelDelta } from "../../src/model/reply.ts";
import { systemClock } from "../../src/ports/system.ts";

/** Sends the request and yields the values that the reader makes of the response body. */
export type Reader = (body: ReadableStream<Uint8Array>) => Promise<AsyncIterable<unknown>>;

export interface Reading {
  provider: ProviderId;
  system: string;
  read: Reader;
}

const HEADERS = { "content-type": "text/event-stream" };
const messages = [{ role: "user" as const, content: "Hi" }];

export const READINGS: readonly Reading[] = [
  ...(["openai", "openai-responses", "anthropic", "gemini"] as const).map((provider) => ({
    provider,
    system: "dramatis",
    read: (body: ReadableStream<Uint8Array>) => throughGateway(provider, body),
  })),
  {
    provider: "openai",
    system: "openai-sdk",
    read: (body) => openai(body).chat.completions.create({ model: "m", messages, stream: true }),
  },
  {
    provider: "openai-responses",
    system: "openai-sdk",
    read: (body) => openai(body).responses.create({ model: "m", input: "Hi", stream: true }),
  },
  {
    provider: "anthropic",
    system: "anthropic-sdk",
    read: (body) =>
      new Anthropic({ apiKey: "k", fetch: answering(body) }).messages.create({
        model: "m",
        max_tokens: 9,
        messages,
        stream: true,
      }),
  },
  { provider: "gemini", system: "google-sdk", read: throughGoogle },
];

async function throughGateway(
  provider: ProviderId,
  body: ReadableStream<Uint8Array>,
): Promise<AsyncIterable<ModelDelta>> {
  const gateway = createModelGateway({ secret: () => "k", fetch: answering(body), clock: systemClock });
  const request = {
    profile: { provider, modelId: "m" },
    body: {},
    context: { tenant: "t", projectId: "p", agentId: "a", conversationId: "c", turnId: "t" },
  };
  return gateway.stream(request, new AbortController().signal);
}

function openai(body: ReadableStream<Uint8Array>): OpenAI {
  return new OpenAI({ apiKey: "k", fetch: answering(body) });
}

/** This SDK accepts no `fetch`, so its request runs with a replaced global `fetch`. */
async function throughGoogle(body: ReadableStream<Uint8Array>): Promise<AsyncIterable<unknown>> {
  const { fetch } = globalThis;
  globalThis.fetch = answering(body);
  try {
    return await new GoogleGenAI({ apiKey: "k" }).models.generateContentStream({
      model: "m",
      contents: "Hi",
    });
  } finally {
    globalThis.fetch = fetch;
  }
}

function answering(body: ReadableStream<Uint8Array>): typeof fetch {
  return async () => new Response(body, { headers: HEADERS });
}
