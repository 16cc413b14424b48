/**
 * An embedder that calls a model of Workers AI or of any OpenAI-compatible server.
 *
 * MODELVEC-1  Vectors have length 1. If the model returns other dimensions than declared, the request fails and names the actual number.
 * MODELVEC-2  A text is sent up to `MAX_TEXT_LENGTH`. The id of the embedder includes provider, model, server and dimensions, so vectors of
 *             two models are never compared.
 * MODELVEC-3  An error reports the kind and the status of a failure. It omits the provider's message, which may quote the texts.
 */
import { type EmbeddingGateway, MAX_TEXTS_OF_REQUEST } from "../../model/embedding.ts";
import type { ModelError } from "../../model/error.ts";
import type { ModelProfile } from "../../model/profile.ts";
import { invalid } from "../../shared/errors.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import { cut } from "../../shared/text.ts";
import type { Embedder } from "./embedder.ts";

/** Longest text to send, in UTF-16 units: about 2,000 tokens. */
export const MAX_TEXT_LENGTH = 8_000;

/** Most dimensions of a vector, the limit of Vectorize. */
const MAX_DIMENSIONS = 1_536;

export interface EmbeddingModel {
  profile: ModelProfile;
  /** The dimensions of its vectors, at most 1,536. If the model has more, request fewer: `parameters: { dimensions: 768 }`. */
  dimensions: number;
}

export class ModelEmbedder implements Embedder {
  readonly id: string;
  readonly isLocal = false;
  readonly dimensions: number;

  /** Throws `INVALID_INPUT` for unsupported dimensions. */
  constructor(
    private readonly model: EmbeddingModel,
    private readonly gateway: EmbeddingGateway,
    private readonly context: CallContext,
  ) {
    const { profile, dimensions } = model;
    if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > MAX_DIMENSIONS)
      throw invalid(
        `The memory embedder has ${dimensions} dimensions. Give 1 to ${MAX_DIMENSIONS}. Many models accept fewer with \`parameters: { dimensions }\` of the profile.`,
      );
    const { provider, modelId, baseUrl = "" } = profile;
    this.dimensions = dimensions;
    this.id = [provider, modelId, baseUrl, String(dimensions)].join(" ");
  }

  async embed(
    texts: readonly string[],
    signal = new AbortController().signal,
  ): Promise<(Float32Array | null)[]> {
    const vectors: (Float32Array | null)[] = [];
    for (let first = 0; first < texts.length; first += MAX_TEXTS_OF_REQUEST)
      vectors.push(...(await this.#request(texts.slice(first, first + MAX_TEXTS_OF_REQUEST), signal)));
    return vectors;
  }

  async embedQuery(text: string, _context: object, signal?: AbortSignal): Promise<Float32Array | null> {
    const [vector = null] = await this.embed([text], signal);
    return vector;
  }

  async #request(texts: readonly string[], signal: AbortSignal): Promise<(Float32Array | null)[]> {
    const sent = texts.map((text) => cut(text, MAX_TEXT_LENGTH));
    const outcome = await this.gateway.embed(
      { profile: this.model.profile, texts: sent, context: this.context },
      signal,
    );
    if (!outcome.ok) throw new Error(failureOf(outcome.error));
    return outcome.embeddings.vectors.map((vector) => this.#checked(vector));
  }

  #checked(vector: readonly number[]): Float32Array | null {
    if (vector.length !== this.dimensions)
      throw new Error(
        `The memory embedder returned vectors with ${vector.length} dimensions, but ${this.dimensions} were declared. Set \`dimensions\`.`,
      );
    const length = Math.hypot(...vector);
    return length > 0 ? Float32Array.from(vector, (value) => value / length) : null;
  }
}

function failureOf({ category, status, provider }: ModelError): string {
  const kind = status === undefined ? category : `${category}, status ${status}`;
  return `The memory embedder failed (${provider}: ${kind}). If this repeats, check the profile of \`memory.embedder\`.`;
}
