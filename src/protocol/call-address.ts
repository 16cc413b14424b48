/** The operation of a call and its attempt: the address in all messages between a caller and the actor that works for the call. */
import { z } from "zod";
import { isOperationId } from "../shared/identifiers.ts";
import { jurisdictionOf } from "../shared/location.ts";
import type { ActorAddress } from "./envelope.ts";
import { calledConversationId, calledRunId } from "./ids.ts";

export const callAddressSchema = z.object({
  operationId: z.string().refine(isOperationId, "Must be the id of an operation."),
  /** From 1. */
  attempt: z.int().min(1),
});

export type CallAddress = z.infer<typeof callAddressSchema>;

/** Reports whether `worker` is the run or the conversation that an attempt of an operation of `caller` opens. */
export function isCalled(
  { operationId, attempt }: CallAddress,
  caller: ActorAddress,
  worker: ActorAddress,
): boolean {
  const jurisdiction = jurisdictionOf(caller.id);
  if (worker.kind === "coordinator") return worker.id === calledRunId(operationId, attempt, jurisdiction);
  return (
    worker.kind === "conversation" && worker.id === calledConversationId(operationId, attempt, jurisdiction)
  );
}
