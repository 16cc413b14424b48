/** How much an application lets its callers do, with the numbers that hold where it says nothing. */
import { z } from "zod";
import { MAX_ATTACHMENT_BYTES } from "../../attachments/attachment.ts";
import type { RateLimit } from "../../shared/token-bucket.ts";
import { validate } from "../../shared/validation.ts";

/** Each is checked on its own; `false` takes a limit away. */
export interface Limits {
  /** Requests of one principal, whatever the route: 1200 a minute, 600 at once. */
  requests?: RateLimit | false;
  /** Turns that one conversation accepts, whoever starts them: 600 a minute, 200 at once. */
  turns?: RateLimit | false;
  /** How long a client has to run a tool that it brought along, in milliseconds: 600 000, ten minutes. */
  clientToolMs?: number;
  /** Bytes that the body of a request may have: 2 MiB. */
  bodyBytes?: number;
  /** Bytes that an attachment may have: 8 MiB. */
  attachmentBytes?: number;
}

/** The most bytes that a body may have where the application says nothing. */
export const MAX_BODY_BYTES = 2 * 1024 * 1024;

const rateLimit = z.strictObject({
  perMinute: z.number().positive("Must be more than 0; `false` takes the limit away."),
  burst: z.int().min(1, "Must be at least 1, or nothing ever passes."),
});
const rateLimitOr = (otherwise: RateLimit) => z.union([z.literal(false), rateLimit]).default(otherwise);

const limitsSchema = z.strictObject({
  requests: rateLimitOr({ perMinute: 1_200, burst: 600 }),
  turns: rateLimitOr({ perMinute: 600, burst: 200 }),
  clientToolMs: z
    .int()
    .min(1_000)
    .max(7 * 24 * 3_600_000)
    .default(600_000),
  bodyBytes: z
    .int()
    .min(1)
    .max(100 * 1024 * 1024)
    .default(MAX_BODY_BYTES),
  attachmentBytes: z
    .int()
    .min(1)
    .max(16 * 1024 * 1024, "More than a model can be given at once.")
    .default(MAX_ATTACHMENT_BYTES),
});

/** The limits, each written out. Throws `INVALID_INPUT` for one that makes no sense. */
export function completeLimits(limits: Limits = {}): Required<Limits> {
  return validate(limitsSchema, limits, "/limits", "The configuration of limits");
}
