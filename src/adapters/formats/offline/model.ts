/** The offline model as a server would be: a request goes in, the payloads of a stream come out. */

import { chunksOf } from "./answer.ts";
import { bodySchema, type OfflineChunk } from "./body.ts";
import { answerTo } from "./rules.ts";
import { viewOf } from "./view.ts";

/** Answers one request. `pause` is awaited between chunks where the request or the answer asks for a pace. */
export async function* offlineModel(
  body: unknown,
  pause: (milliseconds: number) => Promise<void> = async () => {},
): AsyncGenerator<string> {
  const parsed = bodySchema.safeParse(body);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    yield encode({
      error: `The request is not one of the offline model: ${issue?.path.join(".")}: ${issue?.message}`,
    });
    return;
  }
  const answer = answerTo(viewOf(parsed.data));
  const pauseMs = (answer.kind === "text" ? answer.pauseMs : undefined) ?? parsed.data.pauseMs;
  for (const chunk of chunksOf(answer, parsed.data)) {
    yield encode(chunk);
    if (pauseMs > 0 && "text" in chunk) await pause(pauseMs);
  }
}

function encode(chunk: OfflineChunk): string {
  return JSON.stringify(chunk);
}
