/** Takes the answers of agents to the operations of extractions. */
import { z } from "zod";
import { parseItemId } from "../../protocol/ids.ts";
import { MEMORY_EXTRACTED, type MemoryOutcome } from "../../protocol/memory.ts";
import { validate } from "../../shared/validation.ts";
import type { DeliveryOutcome, OutcomeHandler } from "../base/mailbox/handlers.ts";
import type { MemoriesLearned } from "./core/signals.ts";
import type { ConversationUnit } from "./runtime.ts";

const outcome: z.ZodType<MemoryOutcome> = z.discriminatedUnion("status", [
  z.object({ status: z.literal("applied"), memoryId: z.string(), version: z.number() }),
  z.object({ status: z.literal("unchanged"), memoryId: z.string() }),
  z.object({ status: z.literal("refused"), code: z.string(), message: z.string() }),
]);
const answerSchema = z.object({ outcomes: z.array(outcome) });

/** Registers the handler of outcomes. It stages the answer in the transaction that takes the operations out of the outbox. */
export function takeLearnedAnswers(
  mailbox: { outcomes(type: string, handler: OutcomeHandler): void },
  ports: { begin(): ConversationUnit; readonly exists: boolean },
): void {
  mailbox.outcomes(MEMORY_EXTRACTED, (delivered) => {
    const signal = signalOf(delivered);
    // The conversation may have been deleted meanwhile: nobody asks any more.
    if (signal === undefined || !ports.exists) return;
    const unit = ports.begin();
    unit.stage([signal]);
    delivered.afterCommit(() => unit.release());
  });
}

/** Returns the signal of an answer; `undefined` where the envelope names no turn. */
function signalOf({
  envelope: { operationId },
  outcome: delivered,
}: DeliveryOutcome): MemoriesLearned | undefined {
  const address = parseItemId(operationId);
  if (address === null) return undefined;
  const { n: of, item } = address;
  const named = { type: "conversation.memories.learned", of, item } as const;
  if (delivered.status === "delivered") return { ...named, answer: validate(answerSchema, delivered.result) };
  return { ...named, answer: { error: delivered.error } };
}
