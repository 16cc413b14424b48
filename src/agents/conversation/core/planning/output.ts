/**
 * Turns whose answer must be JSON of a schema.
 *
 * OUTPUT-1  Such a turn completes only with an answer that is JSON and fits its schema.
 * OUTPUT-2  An answer that does not is withdrawn, and the model is told what is wrong: at most `MAX_OUTPUT_REPAIRS` times
 *           a turn; then the turn fails with `OUTPUT_INVALID`. So it does at once where the answer was cut off or refused.
 * OUTPUT-3  What is stored of the answer is its text; the data is read from it again.
 */
import type { ModelReply } from "../../../../model/reply.ts";
import type { ErrorData } from "../../../../shared/errors.ts";
import type { Json } from "../../../../shared/json.ts";
import { jsonDepth } from "../../../../shared/json.ts";
import type { AgentDecision } from "../decisions.ts";
import { MAX_OUTPUT_REPAIRS, MAX_WITHDRAWN_LENGTH } from "../limits.ts";
import type { Turn } from "../state.ts";
import { violations } from "./schema-check.ts";

/** Levels of nesting that an answer may have. */
const MAX_DEPTH = 64;

/** What an answer that must fit a schema leads to; `null` where it fits, or the turn wants no more than text. */
export function planOutput(turn: Turn, reply: ModelReply): AgentDecision[] | null {
  const problem = turn.output === undefined ? null : problemOf(turn.output.schema, reply.text);
  if (problem === null) return null;
  const fail = (message: string): AgentDecision[] => [
    { type: "FAIL_TURN", turn: turn.n, error: invalid(message) },
  ];
  if (reply.finishReason === "length") {
    return fail(
      "The model's answer was cut off before it was complete: allow it more output, or ask for less.",
    );
  }
  if (reply.finishReason === "content_filter") return fail("The model refused to answer.");
  const repairs = turn.repairs?.length ?? 0;
  if (repairs >= MAX_OUTPUT_REPAIRS) {
    return fail(`The model's answer does not fit the schema after ${repairs + 1} tries: ${problem}`);
  }
  const text = reply.text.slice(0, MAX_WITHDRAWN_LENGTH).toWellFormed();
  return [{ type: "REPAIR_OUTPUT", turn: turn.n, text, problem }];
}

/** What is wrong with an answer, in words for the model; `null` where nothing is. */
function problemOf(schema: NonNullable<Turn["output"]>["schema"], text: string): string | null {
  if (text.trim() === "") return "the answer is empty";
  let value: Json;
  try {
    value = JSON.parse(text);
  } catch {
    return "the answer is not JSON";
  }
  if (jsonDepth(value, MAX_DEPTH) > MAX_DEPTH) return `the answer nests deeper than ${MAX_DEPTH} levels`;
  const found = violations(schema, value) ?? ["the schema cannot be checked"];
  return found.length === 0 ? null : found.join("; ");
}

function invalid(message: string): ErrorData {
  return { code: "OUTPUT_INVALID", message, retriable: true };
}
