/** Who is asking. Every resource belongs to a tenant; roles open what is not one's own. */
export type Role = "member" | "author" | "operator" | "admin";

export interface Principal {
  subject: string;
  tenant: string;
  roles: Role[];
}

/** A principal that may read everything of its tenant. */
export function mayReadAll(principal: Principal): boolean {
  return principal.roles.includes("operator") || principal.roles.includes("admin");
}

/** A principal that may create and change agents and libraries of its tenant. */
export function mayAuthor(principal: Principal): boolean {
  return principal.roles.includes("author") || principal.roles.includes("admin");
}
