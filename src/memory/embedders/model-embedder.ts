/**
 * An embedder that asks a model: of Workers AI, or of any server with OpenAI's interface.
 *
 * MODELVEC-1  Vectors have length 1. A model that gives another number of numbers than was declared fails the request, and says how many it gave.
 * MODELVEC-2  A text is sent up to `MAX_TEXT_LENGTH`. The name of the embedder has provider, model, server and dimensions: vectors of two
 *             models are never compared.
 * MODELVEC-3  Of a failure its kind and its status are reported, and not the provider's words, which may quote the texts.
 */
import { type EmbeddingGateway, MAX_TEXTS_OF_REQUEST } from "../../model/embedding.ts";
import type { ModelError } from "../../model/error.ts";
import type { ModelProfile } from "../../model/profile.ts";
import { DramatisError } from "../../shared/errors.ts";
import type { CallContext } from "../../shared/identifiers.ts";
import { cut } from "../../shared/text.ts";
import type { Embedder } from "./embedder.ts";

/** UTF-16 units of a text that are sent: about 2 000 tokens. */
export const MAX_TEXT_LENGTH = 8_000;

/** Numbers of a vector at most, as many as Vectorize takes. */
const MAX_DIMENSIONS = 1_536;

/** A model that embeds memories. */
export interface EmbeddingModel {
  profile: ModelProfile;
  /** The numbers of its vectors, at most 1 536. Ask a model that gives more for fewer: `parameters: { dimensions: 768 }`. */
  dimensions: number;
}

export class ModelEmbedder implements Embedder {
  readonly id: string;
  readonly isLocal = false;
  readonly dimensions: number;

  /** Throws `INVALID_INPUT` for dimensions that no index takes. */
  constructor(
    private readonly model: EmbeddingModel,
    private readonly gateway: EmbeddingGateway,
    private readonly context: CallContext,
  ) {
    const { profile, dimensions } = model;
    if (!Number.isInteger(dimensions) || dimensions < 1 || dimensions > MAX_DIMENSIONS)
      throw new DramatisError(
        "INVALID_INPUT",
        `The embedder of memories has ${dimensions} dimensions. Give 1 to ${MAX_DIMENSIONS}: many models take fewer by \`parameters: { dimensions }\` of the profile.`,
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
        `The embedder of memories gave vectors of ${vector.length} numbers, and ${this.dimensions} were declared. Set \`dimensions\`.`,
      );
    const length = Math.hypot(...vector);
    return length > 0 ? Float32Array.from(vector, (value) => value / length) : null;
  }
}

function failureOf({ category, status, provider }: ModelError): string {
  const kind = status === undefined ? category : `${category}, status ${status}`;
  return `The embedder of memories failed (${provider}: ${kind}). Check the profile of \`memory.embedder\` if it stays.`;
}
