/** Who is asking. Every resource belongs to a tenant; roles open what is not one's own. */
export const ROLES = ["member", "author", "operator", "admin"] as const;

export type Role = (typeof ROLES)[number];

export interface Principal {
  subject: string;
  tenant: string;
  roles: Role[];
  /** When its authority ends, in milliseconds since the epoch; absent = it does not end by itself. */
  expiresAt?: number;
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
