/**
 * Requests for embeddings: to an OpenAI-compatible server, to Workers AI, or to the offline hash.
 *
 * EMBED-1  The gateway makes one attempt and never throws. Keys, trusted hosts and time limits are the same as for model calls.
 * EMBED-2  A valid answer has one vector per text, with finite numbers and equal lengths.
 * EMBED-3  Errors never contain the sent key.
 * EMBED-4  Texts are sent well-formed (UNICODE-1).
 */
import { z } from "zod";
import type { EmbeddingGateway, EmbeddingRequest, Embeddings } from "../../model/embedding.ts";
import { MAX_TEXTS_OF_REQUEST } from "../../model/embedding.ts";
import type { ProviderId } from "../../model/profile.ts";
import { defined } from "../../shared/defined.ts";
import { type JsonObject, wellFormed } from "../../shared/json.ts";
import { redactSecrets } from "../../shared/redact.ts";
import { ModelFailure, thrownError } from "../errors/model-errors.ts";
import { DONE } from "../formats/common/decoder.ts";
import { HASH_MODEL, hashEmbedding } from "../formats/offline/embedding.ts";
import { AttemptDeadlines } from "./deadlines.ts";
import { keyOf, postTo } from "./http.ts";
import { type HttpProvider, httpProvider } from "./http-providers.ts";
import type { AttemptWatch, GatewayPorts, Transport } from "./ports.ts";
import { workersAITransport } from "./workers-ai.ts";

export function createEmbeddingGateway(ports: GatewayPorts): EmbeddingGateway {
  return {
    async embed(request, signal) {
      const { profile } = request;
      const attempt = new AttemptDeadlines(ports.clock, profile.executionConfig, signal);
      try {
        attempt.signal.throwIfAborted();
        return { ok: true, embeddings: checked(await embed(request, ports, attempt), request) };
      } catch (thrown) {
        const error = thrownError(thrown, profile.provider, attempt.signal);
        const key = keyOf(profile, ports);
        return { ok: false, error: { ...error, message: redactSecrets(error.message, key ? [key] : []) } };
      } finally {
        attempt.stop();
      }
    },
  };
}

interface Source {
  transport: Transport;
  body(request: EmbeddingRequest): JsonObject;
  read(answer: unknown, request: EmbeddingRequest): Embeddings;
}

const vectors = z.array(z.array(z.number()));

const openaiAnswer = z.object({
  data: z.array(z.object({ index: z.int().optional(), embedding: z.array(z.number()) })),
  model: z.string().nullish(),
  usage: z
    .object({ prompt_tokens: z.int().min(0) })
    .nullish()
    .catch(undefined),
});

const SOURCES: Readonly<Partial<Record<ProviderId, Source>>> = {
  openai: {
    transport: (request, ports, attempt) =>
      postTo(embeddingsOf(httpProvider("openai")), request, ports, attempt),
    body: ({ profile, texts }) => ({ ...profile.parameters, model: profile.modelId, input: [...texts] }),
    read(answer, { profile }) {
      const { data, model, usage } = openaiAnswer.parse(answer);
      const inOrder = data
        .map(({ embedding, index }, place) => ({ embedding, index: index ?? place }))
        .sort((one, other) => one.index - other.index);
      if (inOrder.some(({ index }, place) => index !== place)) throw unusable("has no vector for some texts");
      return {
        vectors: inOrder.map(({ embedding }) => embedding),
        model: model ?? profile.modelId,
        ...defined({ usage: usage ? { inputTokens: usage.prompt_tokens } : undefined }),
      };
    },
  },
  "workers-ai": {
    transport: workersAITransport,
    body: ({ profile, texts }) => ({ ...profile.parameters, text: [...texts] }),
    read: (answer, { profile }) => ({
      vectors: z.object({ data: vectors }).parse(answer).data,
      model: profile.modelId,
    }),
  },
};

function embeddingsOf(provider: HttpProvider | undefined): HttpProvider {
  if (provider === undefined) throw new ModelFailure("validation", "The provider is not reached over HTTP.");
  return { ...provider, call: ({ body }) => ({ path: "/embeddings", headers: {}, body }) };
}

async function embed(
  request: EmbeddingRequest,
  ports: GatewayPorts,
  attempt: AttemptWatch,
): Promise<Embeddings> {
  const { profile, texts, context } = request;
  if (texts.length > MAX_TEXTS_OF_REQUEST)
    throw new ModelFailure("validation", `A request has at most ${MAX_TEXTS_OF_REQUEST} texts.`);
  if (profile.provider === "offline") return { vectors: texts.map(hashEmbedding), model: HASH_MODEL };
  const source = SOURCES[profile.provider];
  if (source === undefined)
    throw new ModelFailure(
      "validation",
      `The provider "${profile.provider}" has no supported embeddings. Use openai (with any compatible server), workers-ai or offline.`,
    );
  const call = { profile, body: wellFormed(source.body(request)), context };
  const answer = await answerOf(source.transport(call, ports, attempt));
  try {
    // Not `parseJson`: vectors have more numbers than other answers may have values. The transport limits the bytes.
    return source.read(JSON.parse(answer), request);
  } catch (error) {
    if (error instanceof ModelFailure) throw error;
    throw unusable("has no embeddings. Check the base URL and the model");
  }
}

async function answerOf(arrivals: ReturnType<Transport>): Promise<string> {
  let text = "";
  for await (const arrival of arrivals) {
    if ("response" in arrival) continue;
    const { payloads } = arrival;
    const batches = Symbol.asyncIterator in payloads ? payloads : [payloads];
    for await (const batch of batches) text += batch.filter((payload) => payload !== DONE).join("");
  }
  return text;
}

function checked(embeddings: Embeddings, { texts }: EmbeddingRequest): Embeddings {
  const { vectors: made } = embeddings;
  if (made.length !== texts.length) throw unusable(`has ${made.length} vectors for ${texts.length} texts`);
  const dimensions = made[0]?.length ?? 0;
  if (dimensions === 0 || made.some((vector) => vector.length !== dimensions))
    throw unusable("has vectors that are empty or differ in length");
  if (!made.every((vector) => vector.every(Number.isFinite)))
    throw unusable("has a number beyond the range of numbers");
  return embeddings;
}

function unusable(what: string): ModelFailure {
  return new ModelFailure("transient", `The answer of the embedding model ${what}.`);
}
