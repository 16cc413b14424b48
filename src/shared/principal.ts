/**
 * Who is asking. Every resource belongs to a tenant; roles open what is not one's own.
 *
 * PRINCIPAL-1  No two tenants share a name of an actor, a row or a key of storage, and none has a name that stands for no
 *              tenant: theirs begin with no colon, are well-formed, and short enough to stand in each of them.
 */
import { DramatisError } from "./errors.ts";

export const ROLES = ["member", "author", "operator", "admin"] as const;

export type Role = (typeof ROLES)[number];

export interface Principal {
  subject: string;
  tenant: string;
  roles: Role[];
  /** When its authority ends, in milliseconds since the epoch; absent = it does not end by itself. */
  expiresAt?: number;
}

/** With this many characters a tenant's name, escaped, leaves room for the rest in a key of 1 024 bytes. */
const MAX_TENANT_LENGTH = 100;
const MAX_SUBJECT_LENGTH = 200;

/** The principal as it is. Throws `UNAVAILABLE`, saying what to change, for one of an application that cannot be used. */
export function usablePrincipal(principal: Principal): Principal {
  const { tenant, subject } = principal;
  const isName = (name: string, max: number) => name !== "" && name.length <= max && name.isWellFormed();
  if (isName(tenant, MAX_TENANT_LENGTH) && !tenant.startsWith(":") && isName(subject, MAX_SUBJECT_LENGTH))
    return principal;
  throw new DramatisError(
    "UNAVAILABLE",
    `\`authorize\` names a principal that cannot be used: a tenant is 1 to ${MAX_TENANT_LENGTH} well-formed characters and begins with no colon, a subject 1 to ${MAX_SUBJECT_LENGTH}.`,
  );
}

/** A principal that may read everything of its tenant. */
export function mayReadAll(principal: Principal): boolean {
  return principal.roles.includes("operator") || principal.roles.includes("admin");
}

/** A principal that may create and change agents and libraries of its tenant. */
export function mayAuthor(principal: Principal): boolean {
  return principal.roles.includes("author") || principal.roles.includes("admin");
}

/** Whether a principal's authority has ended. */
export function hasExpired({ expiresAt }: Pick<Principal, "expiresAt">, now: number): boolean {
  return expiresAt !== undefined && expiresAt <= now;
}
