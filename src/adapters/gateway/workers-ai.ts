/** Runs a model through the AI binding. */

import type { ErrorCategory } from "../../model/error.ts";
import { redactSecrets } from "../../shared/redact.ts";
import { shorten } from "../../shared/text.ts";
import { ModelFailure } from "../errors/model-errors.ts";
import { DONE } from "../formats/common/decoder.ts";
import { abortable } from "./abortable.ts";
import { eventData } from "./events.ts";
import type { Transport } from "./ports.ts";

export const workersAITransport: Transport = async function* ({ profile, body }, { ai }, attempt) {
  if (ai === undefined) {
    throw new ModelFailure(
      "validation",
      'This Worker has no AI binding: add `"ai": {"binding": "AI"}` to its configuration or choose another provider.',
    );
  }
  const { signal } = attempt;
  const answer = await answerOf(async () => ai.run(profile.modelId, body, { signal }), signal);
  yield { response: {} };
  const stream = answer instanceof Response ? answer.body : answer;
  if (stream instanceof ReadableStream) {
    yield { payloads: eventData(stream, signal, attempt) };
  } else {
    yield { payloads: [JSON.stringify(answer) ?? "", DONE] };
  }
};

/** The binding's answer, or the signal's reason if that comes first: not every call heeds its signal. */
async function answerOf(run: () => Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  try {
    return await abortable(run, signal, discard);
  } catch (error) {
    signal.throwIfAborted();
    throw failure(error);
  }
}

/** An answer that comes too late is not read; its stream is given back. */
function discard(late: unknown): void {
  if (late instanceof ReadableStream) late.cancel().catch(() => undefined);
}

/** The codes that the platform documents, which stand before the message. */
const CATEGORY_BY_CODE: ReadonlyMap<string, ErrorCategory> = new Map([
  ["3003", "validation"],
  ["3006", "validation"],
  ["3007", "timeout"],
  ["3008", "timeout"],
  ["3023", "auth"],
  ["3036", "quota"],
  ["3039", "validation"],
  ["3040", "rate_limit"],
  ["3041", "auth"],
  ["3042", "not_found"],
  ["5004", "validation"],
  ["5005", "validation"],
  ["5006", "validation"],
  ["5007", "not_found"],
  ["5016", "auth"],
  ["5018", "auth"],
  ["5019", "validation"],
]);

function failure(error: unknown): ModelFailure {
  const message = error instanceof Error ? error.message : String(error);
  const code = /(?:^|: )(\d{4}):/.exec(message)?.[1] ?? "";
  const said = shorten(redactSecrets(message.toWellFormed()), 500);
  return new ModelFailure(CATEGORY_BY_CODE.get(code) ?? "transient", `Workers AI failed: ${said}`);
}
