/**
 * Recorded replies of models, in a file.
 *
 * EVALREPLY-1  The same request gets its recorded reply without a call. Without a recorded reply, and without a live gateway, the request is
 *              refused and named.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import type { ModelGateway, ModelRequest } from "../../model/gateway.ts";
import type { ModelDelta } from "../../model/reply.ts";
import { canonicalJson } from "../../shared/json.ts";
import { sha256Hex } from "../../shared/sha256.ts";
import { failure } from "../model-script.ts";

export class RecordedReplies {
  readonly #replies: Map<string, ModelDelta[]>;
  #isChanged = false;
  /** Calls that were made. */
  calls = 0;

  /** `path` is a file; it may be missing. Without a path, no file is written. */
  constructor(private readonly path?: string) {
    const text = path !== undefined && existsSync(path) ? readFileSync(path, "utf8") : "{}";
    this.#replies = new Map(Object.entries(JSON.parse(text)));
  }

  /** Returns a gateway over the recorded replies. `live` answers the others. `onMissing` takes requests without a reply. */
  gateway(live: ModelGateway | undefined, onMissing: (problem: string) => void): ModelGateway {
    const replies = this;
    return {
      async *stream(request, signal) {
        const key = await keyOf(request);
        const known = replies.#replies.get(key);
        if (known !== undefined) return yield* known;
        const { provider, modelId } = request.profile;
        if (live === undefined) {
          const problem = `No recorded reply of ${provider}/${modelId} fits this request.`;
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
        replies.#isChanged = true;
      },
    };
  }

  /** Writes new replies to the file. */
  save(): void {
    if (this.path === undefined || !this.#isChanged) return;
    writeFileSync(this.path, `${JSON.stringify(Object.fromEntries(this.#replies), null, 1)}\n`);
  }
}

function keyOf({ profile: { provider, modelId }, body }: ModelRequest): Promise<string> {
  return sha256Hex(canonicalJson([provider, modelId, body]));
}
