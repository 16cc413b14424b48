/**
 * Returns the members that have a value. JSON Schema, RPC and types distinguish an absent member from an undefined one.
 *
 * @example { id, ...defined({ name, requestId: error.requestId }) }
 */
export function defined<Members extends object>(
  members: Members,
): { [Key in keyof Members]?: Exclude<Members[Key], undefined> } {
  const kept: Partial<Members> = {};
  for (const key in members) {
    if (members[key] !== undefined) kept[key] = members[key];
  }
  // SAFETY: only members that are not `undefined` were kept.
  return kept as { [Key in keyof Members]?: Exclude<Members[Key], undefined> };
}
