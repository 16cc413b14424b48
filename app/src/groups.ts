/** Groups of a list of conversations by the day of their last activity. Pure. */

const DAY_MS = 86_400_000;

/** Returns the groups that have members, in the order of the list. The pinned conversations come first. */
export function groupsOf<Item extends { lastActivityAt: string; pinned?: true }>(
  items: readonly Item[],
  now: Date,
): [name: string, members: Item[]][] {
  return [...Map.groupBy(items, (item) => groupOf(item, now))];
}

function groupOf({ lastActivityAt, pinned }: { lastActivityAt: string; pinned?: true }, now: Date): string {
  if (pinned === true) return "Pinned";
  const days = daysBefore(new Date(lastActivityAt), now);
  if (days < 1) return "Today";
  if (days < 2) return "Yesterday";
  if (days < 8) return "Previous 7 days";
  return days < 31 ? "Previous 30 days" : "Older";
}

/** Returns the number of midnights between two times, in the reader's zone. */
function daysBefore(at: Date, now: Date): number {
  const midnight = (date: Date) => Date.UTC(date.getFullYear(), date.getMonth(), date.getDate());
  return (midnight(now) - midnight(at)) / DAY_MS;
}
