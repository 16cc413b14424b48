/** The limits that an application sets for its callers, and their defaults. */
import { z } from "zod";
import { MAX_ATTACHMENT_BYTES } from "../../attachments/attachment.ts";
import { MAX_ACTIVE_TOKENS, MAX_TREE_RUNS, MAX_WORKING_RUNS } from "../../protocol/run-call.ts";
import type { RateLimit } from "../../shared/token-bucket.ts";
import { validate } from "../../shared/validation.ts";

/**
 * Limits of the HTTP API, of turns and of runs. An absent limit has its default; `false` removes a rate limit.
 *
 * @example
 * { requests: { perMinute: 60, burst: 20 }, turns: false, bodyBytes: 512 * 1024 }
 */
export interface Limits {
  /** Requests of one principal to all routes together. Default: 1 200 a minute, 600 at once. */
  requests?: RateLimit | false;
  /** Turns of one conversation, started by anyone. Default: 600 a minute, 200 at once. */
  turns?: RateLimit | false;
  /**
   * Stops, resumes and changes of the turn order, per conversation, by any user. No-ops and stops that end turns do
   * not count. Default: 30 a minute, 10 at once.
   */
  changes?: RateLimit | false;
  /**
   * Maximum number of turns that one message of a user causes, including turns that agents start by mentions. From 1
   * to 64. Default: 8.
   */
  agentTurns?: number;
  /** Time that a client has to run one of its own tools, in milliseconds. Default: 600 000, ten minutes. */
  clientToolMs?: number;
  /**
   * Limits of nested agent calls: the depth, the open calls of one conversation, and all open calls below one
   * conversation. Default: 4, 32 and 256.
   */
  calls?: { depth?: number; open?: number; tree?: number };
  /** Maximum number of foreground calls of tools that run at a time in a conversation. Further calls wait. From 1 to 64. Default: 4. */
  toolCalls?: number;
  /** Time limit for a person's approval of a tool call, in milliseconds. Default: 86 400 000, a day. */
  approvalMs?: number;
  /**
   * Maximum number of branches in one run. A larger fan-out is split into child runs of at most this size. From 1 to
   * 2 000. Default: 1 000. A run keeps its initial width.
   */
  fanOutWidth?: number;
  /**
   * The tree of a run: the run with all runs below it, at all depths. `active`: runs below the first run that may work at once. Further runs wait.
   * From 1 to 1 000. Default: 64. `tokens`: active tokens above which fan-outs wait. From 1 000 to 10 000 000. Default: 100 000. A tree keeps the
   * values of both from its beginning. `total`: runs that a tree may start in total. From 1 to 100 000. Default: 10 000.
   */
  runs?: { active?: number; tokens?: number; total?: number };
  /** Maximum size of a request body, in bytes. Default: 2 MiB. */
  bodyBytes?: number;
  /** Maximum size of an attachment, in bytes. Default: 8 MiB. */
  attachmentBytes?: number;
}

/** The most that the limits of calls of agents may be. */
const MAX_DEPTH = 32;
const MAX_OPEN = 256;
const MAX_TREE = 4_096;

const rateLimit = z.strictObject({
  perMinute: z.number().positive("Must be more than 0. Use `false` to remove the limit."),
  burst: z.int().min(1, "Must be at least 1: with 0 no request passes."),
});
const rateLimitOr = (defaultLimit: RateLimit) => z.union([z.literal(false), rateLimit]).default(defaultLimit);

const limitsSchema = z.strictObject({
  requests: rateLimitOr({ perMinute: 1_200, burst: 600 }),
  turns: rateLimitOr({ perMinute: 600, burst: 200 }),
  changes: rateLimitOr({ perMinute: 30, burst: 10 }),
  agentTurns: z.int().min(1).max(64).default(8),
  clientToolMs: z
    .int()
    .min(1_000)
    .max(7 * 24 * 3_600_000)
    .default(600_000),
  calls: z
    .strictObject({
      depth: z.int().min(0).max(MAX_DEPTH).default(4),
      open: z.int().min(1).max(MAX_OPEN).default(32),
      tree: z.int().min(1).max(MAX_TREE).default(256),
    })
    .prefault({}),
  toolCalls: z.int().min(1).max(64).default(4),
  approvalMs: z
    .int()
    .min(1_000)
    .max(30 * 24 * 3_600_000)
    .default(24 * 3_600_000),
  fanOutWidth: z.int().min(1).max(2_000).exactOptional(),
  runs: z
    .strictObject({
      active: z.int().min(1).max(1_000).default(MAX_WORKING_RUNS),
      tokens: z.int().min(1_000).max(10_000_000).default(MAX_ACTIVE_TOKENS),
      total: z.int().min(1).max(100_000).default(MAX_TREE_RUNS),
    })
    .prefault({}),
  bodyBytes: z
    .int()
    .min(1)
    .max(100 * 1024 * 1024)
    .default(2 * 1024 * 1024),
  attachmentBytes: z
    .int()
    .min(1)
    .max(16 * 1024 * 1024, "Must be at most 16 MiB: models accept no more at once.")
    .default(MAX_ATTACHMENT_BYTES),
});

/** Checks the limits and adds the defaults. Throws `INVALID_INPUT` for a limit out of range. */
export function completeLimits(limits: Limits = {}): z.output<typeof limitsSchema> {
  return validate(limitsSchema, limits, "/limits", "The configuration of limits");
}
