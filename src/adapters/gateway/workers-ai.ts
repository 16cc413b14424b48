/** Runs a model through the AI binding. */
import type { ErrorCategory } from "../../model/error.ts";
import { race } from "../../ports/deadline.ts";
import { errorText } from "../../shared/errors.ts";
import { clean, ModelFailure } from "../errors/model-errors.ts";
import { DONE } from "../formats/common/decoder.ts";
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
    yield { payloads: eventData(stream, attempt) };
  } else {
    yield { payloads: [JSON.stringify(answer) ?? "", DONE] };
  }
};

/** Returns the binding's answer, or throws the signal's reason: not every call of the binding obeys its signal. */
async function answerOf(run: () => Promise<unknown>, signal: AbortSignal): Promise<unknown> {
  try {
    return await race(run, signal, discard);
  } catch (error) {
    signal.throwIfAborted();
    throw failure(error);
  }
}

function discard(late: unknown): void {
  if (late instanceof ReadableStream) late.cancel().catch(() => undefined);
}

/** The documented codes of the platform, which precede the message. */
const CODES: readonly (readonly [ErrorCategory, ...codes: string[]])[] = [
  ["validation", "3003", "3006", "3039", "5004", "5005", "5006", "5019"],
  ["timeout", "3007", "3008"],
  ["auth", "3023", "3041", "5016", "5018"],
  ["quota", "3036"],
  ["rate_limit", "3040"],
  ["not_found", "3042", "5007"],
];

function failure(error: unknown): ModelFailure {
  const message = errorText(error);
  const code = /(?:^|: )(\d{4}):/.exec(message)?.[1] ?? "";
  const [category = "transient"] = CODES.find(([, ...codes]) => codes.includes(code)) ?? [];
  return new ModelFailure(category, `Workers AI failed: ${clean(message)}`);
}
