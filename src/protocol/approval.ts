/**
 * Approvals: the answers of people to calls of tools, and to gates of runs.
 *
 * WHO-1  A rule names the people who may answer. Without a rule, these are the participants: everyone who may read the conversation or the run.
 * WHO-2  The requester is the person at the root of the work: the author of the message that began it, or the starter of the run. A delegate, a
 *        sub-workflow and a loop-in keep the requester. A trigger has the user that it acts as.
 * WHO-3  `notRequester` excludes the requester from any rule, also as an admin.
 * WHO-4  An admin has each role.
 */
import type { z } from "zod";
import type { Principal } from "../shared/principal.ts";
import { hasRole, ROLES } from "../shared/roles.ts";
import type { APPROVAL_OUTCOMES, ApprovalNeed, ApprovalRule } from "./approval-schema.ts";
import type { answeredBy } from "./move-schemas.ts";

/**
 * `approved` and `denied`: a person answered. `expired`: the time limit passed. `superseded`: a newer message interrupted
 * the turn. Only `approved` lets the call run.
 */
export type ApprovalOutcome = (typeof APPROVAL_OUTCOMES)[number];

/** The rule of a request, and its requester. */
export type AnsweredBy = z.infer<z.ZodObject<typeof answeredBy>>;

/** Reports whether a need asks for an approval of each call. */
export function needsApproval(need: ApprovalNeed | undefined): need is "always" | ApprovalRule {
  return need !== undefined && need !== "never";
}

/** Returns the need of a tool over code that also has a need. The rule of the code has priority over the rule of the tool (APPROVE-9). */
export function needOver(
  code: ApprovalNeed | undefined,
  tool: ApprovalNeed | undefined,
): ApprovalNeed | undefined {
  return needsApproval(code) ? (ruleOf(code) ?? ruleOf(tool) ?? "always") : tool;
}

/** Returns the rule of a need; `undefined` if every participant may answer. */
export function ruleOf(need: ApprovalNeed | undefined): ApprovalRule | undefined {
  return typeof need === "object" ? need : undefined;
}

/** Reports whether a person may answer a request. `isReader`: the person may read its conversation or its run. */
export function mayAnswer(
  asked: AnsweredBy,
  principal: Pick<Principal, "subject" | "roles">,
  isReader: boolean,
): boolean {
  const { subject } = principal;
  if (asked.rule?.notRequester === true && subject === asked.requester) return false;
  const approvers = approversOf(asked, isReader ? [subject] : []);
  return namesOf(principal).some((name) => approvers.includes(name));
}

/** Returns the people who may answer, by the names that `namesOf` returns. `readers` and operators may read the conversation or the run. */
export function approversOf({ rule = {}, requester }: AnsweredBy, readers: readonly string[]): string[] {
  const { by = "participant", notRequester } = rule;
  const operators = "role:operator";
  const named = (users: readonly string[]) =>
    users.filter((user) => notRequester !== true || user !== requester).map((user) => `user:${user}`);
  switch (by) {
    case "requester":
      if (requester === undefined) return [];
      return [readers.includes(requester) ? `user:${requester}` : `operator:${requester}`];
    case "participant":
      return [...named(readers), operators];
    case "operator":
      return [operators];
    default: {
      const { roles = [], users = [] } = by;
      return [...named(users), ...roles.map((role) => `role:${role}`)];
    }
  }
}

/** Returns the names of a principal: its subject, and each of its roles. */
export function namesOf(principal: Pick<Principal, "subject" | "roles">): string[] {
  const { subject } = principal;
  const roles = ROLES.filter((role) => hasRole(principal, role)).map((role) => `role:${role}`);
  return [`user:${subject}`, ...roles, ...(hasRole(principal, "operator") ? [`operator:${subject}`] : [])];
}

/** Returns a sentence that says who may answer a request, such as "Only operators and admins may answer." */
export function whoMayAnswer({ by = "participant", notRequester }: ApprovalRule = {}): string {
  const except = notRequester === true ? ", except the requester," : "";
  return `Only ${groupOf(by)}${except} may answer.`;
}

function groupOf(by: NonNullable<ApprovalRule["by"]>): string {
  switch (by) {
    case "requester":
      return "the requester";
    case "participant":
      return "participants";
    case "operator":
      return "operators and admins";
    default: {
      const { roles = [], users = [] } = by;
      const names = users.map((user) => JSON.stringify(user));
      return [...roles.map((role) => `users with the role ${role}`), ...names].join(" or ");
    }
  }
}
