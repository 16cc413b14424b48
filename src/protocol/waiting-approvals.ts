/** Requests that wait for people, as the inbox lists them: calls of tools, and gates of runs. */
import type { JsonObject } from "../shared/json.ts";
import type { PageOptions } from "../shared/page.ts";
import type { Principal } from "../shared/principal.ts";
import { hasRole, ROLES } from "../shared/roles.ts";
import type { AnsweredBy } from "./approval.ts";
import type { HUMAN_KINDS } from "./task-definition.ts";

interface Waiting extends AnsweredBy {
  /** Names the request in answers. */
  operationId: string;
  projectId: string;
  /** Absent if it is too large for the list. */
  input?: JsonObject;
  /** ISO 8601, UTC. */
  requestedAt: string;
  /** Absent if the request waits without a limit. */
  expiresAt?: string;
}

/** A call of a tool that waits for a person. */
export interface WaitingCall extends Waiting {
  kind: "tool";
  conversationId: string;
  turnId: string;
  agentId: string;
  /** The name of the tool. */
  name: string;
  /** The task or the workflow that runs, as `library/id`. Absent if the tool has no target. */
  target?: string;
}

/** A gate of a run. */
export interface WaitingGate extends Waiting {
  kind: "gate";
  runId: string;
  workflow: { library: string; id: string; version: number };
  /** Absent if the run itself asks for more time. */
  node?: string;
  question: (typeof HUMAN_KINDS)[number];
  prompt: string;
  /** JSON Schema of the answer. */
  schema: JsonObject;
}

export type WaitingApproval = WaitingCall | WaitingGate;

/** A request, and the people who may answer it, by the names that `namesOf` returns. */
export interface ListedApproval {
  approval: WaitingApproval;
  approvers: string[];
}

/** Selects the requests of a list. Absent members do not filter. */
export interface ApprovalFilter {
  kind?: WaitingApproval["kind"];
  agent?: string;
  conversation?: string;
  run?: string;
  /** Requests since this time, in milliseconds since the epoch. */
  since?: number;
}

export type ApprovalsRequest = PageOptions & ApprovalFilter;

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
