/** Pages of dead letters: their cursor is the last one's operation id. */
import { z } from "zod";
import { isOperationId } from "../../../shared/identifiers.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;

export const deadLetterPageSchema = z.strictObject({
  limit: z.int().min(1).max(MAX_LIMIT).default(DEFAULT_LIMIT),
  cursor: z.exactOptional(z.string().refine(isOperationId, "Must be the `nextCursor` of an answer.")),
  order: z.exactOptional(z.enum(["asc", "desc"])),
});
