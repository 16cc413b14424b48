/** The results of calls that fit into no envelope: the excerpt in the envelope, and the RPC interface for the whole result. */
import { z } from "zod";
import type { Result } from "../shared/errors.ts";
import type { CallAddress } from "./call-address.ts";

/** The size, the beginning and the end of a result's JSON. */
export const resultExcerptSchema = z.object({
  /** Bytes of the JSON. */
  bytes: z.int().min(0),
  head: z.string().max(10_000),
  tail: z.string().max(10_000),
});

export type ResultExcerpt = z.infer<typeof resultExcerptSchema>;

/** The RPC interface of a `Coordinator` or `Conversation` for the caller of its work. Only Workers with a binding reach it. */
export interface WholeResultApi {
  /** Returns the JSON of the result of an attempt, as UTF-8. `NOT_FOUND` if this actor has no result of the attempt. */
  wholeResult(address: CallAddress): Promise<Result<Uint8Array>>;
}
