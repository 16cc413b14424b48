/** The roles of principals. Browsers import this file, so it imports no class. */

export const ROLES = ["member", "author", "operator", "admin"] as const;

export type Role = (typeof ROLES)[number];

/** The roles of a principal. Unknown roles grant no rights. */
export type Roles = readonly (Role | (string & {}))[];

/** Reports whether a principal has a role. An admin has each role. */
export function hasRole({ roles }: { roles: Roles }, role: Role): boolean {
  return roles.includes(role) || roles.includes("admin");
}
