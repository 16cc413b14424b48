/**
 * Recorded replies of models, in a file.
 *
 * EVALREPLY-1  The same request gets its recorded reply without a call. Without a recorded reply, and without a live gateway, the request is
 *              refused and named.
 * EVALREPLY-2  The file names the model of agents without a model profile, so a later run without a live gateway needs no settings.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { ModelGateway, ModelRequest } from "../../model/gateway.ts";
import type { ModelProfile } from "../../model/profile.ts";
import type { ModelDelta } from "../../model/reply.ts";
import { canonicalJson } from "../../shared/json.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { failure } from "../model-script.ts";

/** The model of agents without a profile, if the environment and the file name no model. */
const NO_MODEL: ModelProfile = { provider: "offline", modelId: "none" };

export class RecordedReplies {
  readonly #replies: Map<string, ModelDelta[]>;
  /** The model of agents without a model profile in the recorded replies. */
  #model: Pick<ModelProfile, "provider" | "modelId"> | undefined;
  #isChanged = false;
  /** Calls that were made. */
  calls = 0;

  /** `path` is a file; it may be missing. Without a path, no file is written. */
  constructor(private readonly path?: string) {
    const text = path !== undefined && existsSync(path) ? readFileSync(path, "utf8") : "{}";
    const { model, ...replies } = JSON.parse(text);
    this.#model = model;
    this.#replies = new Map(Object.entries(replies));
  }

  /** Returns the model of agents without a model profile. `chosen` is the model of the environment. */
  defaultProfile(isLive: boolean, chosen: ModelProfile | undefined): ModelProfile {
    return (isLive ? (chosen ?? this.#model) : (this.#model ?? chosen)) ?? NO_MODEL;
  }

  /** Returns a gateway over the recorded replies. `live` answers the others. `onMissing` takes requests without a reply. */
  gateway(
    live: ModelGateway | undefined,
    defaultProfile: ModelProfile,
    onMissing: (problem: string) => void,
  ): ModelGateway {
    const replies = this;
    const isDefault = ({ provider, modelId }: ModelProfile) =>
      provider === defaultProfile.provider && modelId === defaultProfile.modelId;
    return {
      async *stream(request, signal) {
        const key = await keyOf(request);
        const known = replies.#replies.get(key);
        if (known !== undefined) return yield* known;
        const { provider, modelId } = request.profile;
        if (live === undefined || modelId === NO_MODEL.modelId) {
          const problem =
            modelId === NO_MODEL.modelId
              ? "The agent has no model profile. Set OPENAI_API_KEY or DRAMATIS_MODEL."
              : `No recorded reply of ${provider}/${modelId} fits this request. Use --live, or record its replies.`;
          onMissing(problem);
          yield failure(provider, problem, false);
          return;
        }
        replies.calls += 1;
        const deltas: ModelDelta[] = [];
        for await (const delta of live.stream(request, signal)) {
          deltas.push(delta);
          yield delta;
        }
        if (deltas.at(-1)?.type === "error") return;
        replies.#replies.set(key, deltas);
        if (isDefault(request.profile)) replies.#model = { provider, modelId };
        replies.#isChanged = true;
      },
    };
  }

  save(): void {
    if (this.path === undefined || !this.#isChanged) return;
    writeFileSync(
      this.path,
      `${JSON.stringify({ model: this.#model, ...Object.fromEntries(this.#replies) }, null, 1)}\n`,
    );
  }
}

function keyOf({ profile: { provider, modelId }, body }: ModelRequest): Promise<string> {
  return sha256Hex(canonicalJson([provider, modelId, body]));
}
