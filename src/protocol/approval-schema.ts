/** The schemas of approvals. They are not in `approval.ts` because browsers load that file, without zod. */
import { z } from "zod";
import { ORIGINS } from "../model/taint.ts";
import { ROLES, type Role } from "../shared/roles.ts";

/** Users that a rule names at most. */
const MAX_USERS = 100;

export const APPROVAL_OUTCOMES = ["approved", "denied", "expired", "superseded"] as const;

const KNOWN_ROLES = ROLES.map((role) => `\`${role}\``).join(", ");

// A refinement reports its own problem. A union would report one general problem instead.
const role = z.string().refine((name): name is Role => ROLES.some((known) => known === name), {
  error: ({ input }) => `Unknown role ${JSON.stringify(input)}. The roles are ${KNOWN_ROLES}.`,
});

const people = z
  .strictObject({
    roles: z.array(role).max(ROLES.length).exactOptional(),
    users: z.array(z.string().min(1).max(200)).max(MAX_USERS).exactOptional(),
  })
  .refine(({ roles = [], users = [] }) => roles.length + users.length > 0, "Must name a role or a user.");

export const approvalRuleSchema = z
  .strictObject({
    /**
     * `requester`: the person who caused the work. `participant`: everyone who may read the conversation or the run. `operator`: operators and
     * admins. An object names users by their subject, and roles: these people need not take part.
     */
    by: z
      .union(
        [z.enum(["requester", "participant", "operator"]), people],
        "Must be `requester`, `participant`, `operator`, or {roles, users}.",
      )
      .exactOptional(),
    /** The requester may not answer. */
    notRequester: z.literal(true, "Must be `true`, or absent.").exactOptional(),
  })
  .refine((rule) => Object.keys(rule).length > 0, "Must have `by` or `notRequester`.")
  .refine(({ by, notRequester }) => by !== "requester" || notRequester === undefined, {
    path: ["notRequester"],
    error: "Must be absent if `by` is `requester`. Together they exclude everyone.",
  });

/** The people who may answer a request. The default is every participant. */
export type ApprovalRule = z.infer<typeof approvalRuleSchema>;

export const policyAskSchema = z.strictObject({
  rule: z.string().exactOptional(),
  reason: z.string().exactOptional(),
  taint: z.array(z.enum(ORIGINS)).readonly().exactOptional(),
});

export const approvalNeedSchema = z.union(
  [z.enum(["always", "never"]), approvalRuleSchema],
  "Must be `always`, `never`, or {by, notRequester}.",
);

/** The need of a tool's calls for an approval: `always` and a rule need one. `never` when absent. */
export type ApprovalNeed = z.infer<typeof approvalNeedSchema>;
