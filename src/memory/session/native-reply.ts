/** Whether something that was stored is a reply in the words of its provider (NATIVE-1). */
import { z } from "zod";
import type { NativeReply } from "../../model/messages.ts";

const facts = z.record(z.string(), z.unknown());
const index = z.int().nonnegative();

const schema = z.strictObject({
  provider: z.string(),
  modelId: z.string(),
  parts: z.array(
    z.discriminatedUnion("type", [
      z.strictObject({ type: z.literal("text"), length: index, extra: facts.optional() }),
      z.strictObject({ type: z.literal("tool-call"), index, extra: facts.optional() }),
      z.strictObject({ type: z.literal("block"), value: facts }),
    ]),
  ),
});

export function isNativeReply(value: unknown): value is NativeReply {
  return schema.safeParse(value).success;
}
