/** The schema of the rules that name who may answer a request for approval. */
import { z } from "zod";
import { ROLES, type Role } from "../shared/roles.ts";
import type { ApprovalNeed, ApprovalRule } from "./approval.ts";

/** Users that a rule names at most. */
const MAX_USERS = 100;

const KNOWN_ROLES = ROLES.map((role) => `\`${role}\``).join(", ");

// A refinement reports its own problem. A union would report one general problem instead.
const role = z.string().refine((name): name is Role => ROLES.some((known) => known === name), {
  error: ({ input }) => `Unknown role ${JSON.stringify(input)}. The roles are ${KNOWN_ROLES}.`,
});

const people = z
  .strictObject({
    roles: z.exactOptional(z.array(role).max(ROLES.length)),
    users: z.exactOptional(z.array(z.string().min(1).max(200)).max(MAX_USERS)),
  })
  .refine(({ roles = [], users = [] }) => roles.length + users.length > 0, "Must name a role or a user.");

export const approvalRuleSchema: z.ZodType<ApprovalRule> = z
  .strictObject({
    by: z.exactOptional(
      z.union(
        [z.enum(["requester", "participant", "operator"]), people],
        "Must be `requester`, `participant`, `operator`, or {roles, users}.",
      ),
    ),
    notRequester: z.exactOptional(z.literal(true, "Must be `true`, or absent.")),
  })
  .refine((rule) => Object.keys(rule).length > 0, "Must have `by` or `notRequester`.")
  .refine(({ by, notRequester }) => by !== "requester" || notRequester === undefined, {
    path: ["notRequester"],
    error: "Must be absent if `by` is `requester`. Together they exclude everyone.",
  });

export const approvalNeedSchema: z.ZodType<ApprovalNeed> = z.union(
  [z.enum(["always", "never"]), approvalRuleSchema],
  "Must be `always`, `never`, or {by, notRequester}.",
);
