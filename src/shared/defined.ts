/** An object without its undefined members: an absent member and one that is `undefined` are not the same to JSON Schema, RPC and types. */

/**
 * The members that have a value.
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
