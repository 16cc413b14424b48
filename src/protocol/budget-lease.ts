/**
 * Budget leases: a conversation's request to its agent, and the answer. All amounts are sums since the conversation
 * began, so repeated and late messages are no-ops.
 */
import { z } from "zod";
import { amountsSchema } from "./budget.ts";

/** The envelope type for leasing a part of the agent's budget and for returning it. */
export const BUDGET_LEASE = "budget.lease";

const amounts = z.strictObject(amountsSchema.shape);

export const leaseRequestSchema = z.strictObject({
  /** Ascends with each request of a conversation. The newest request counts. */
  seq: z.int().min(1),
  /** Used up by the conversation's calls of this agent. */
  spent: amounts,
  /** The amounts that the conversation may use up until it has an answer. */
  keeps: amounts,
  /** The amounts that its next call needs. Equal to `keeps` if the conversation returns the rest. */
  needs: amounts,
  /** The amounts that it asks for, so that it need not ask before each call. */
  wants: amounts,
  /** No call waits for the answer. */
  ahead: z.literal(true).exactOptional(),
});

export type LeaseRequest = z.infer<typeof leaseRequestSchema>;

export const leaseAnswerSchema = z.object({
  /** The amounts that the conversation may use up from now on. */
  granted: amounts,
  /** The limit that `needs` would exceed. Absent if it fits. */
  excess: z
    .strictObject({
      scope: z.literal("agent"),
      limit: z.enum(["tokens", "usd", "modelCalls"]),
      allowed: z.number(),
      used: z.number(),
      needed: z.number(),
      leased: z.number().exactOptional(),
    })
    .exactOptional(),
});

export type LeaseAnswer = z.infer<typeof leaseAnswerSchema>;
