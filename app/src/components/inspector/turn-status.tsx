/** The status of a turn. */
import type { TurnRecord } from "../../../../src/client/index.ts";
import { Icon, type IconName } from "../icon.tsx";

const looks: Record<TurnRecord["status"], { text: string; icon: IconName; className: string }> = {
  active: { text: "Active", icon: "spinner", className: "text-accent" },
  completed: { text: "Completed", icon: "check", className: "text-accent" },
  failed: { text: "Failed", icon: "cross", className: "text-danger" },
};

export function TurnStatusBadge({ status }: { status: TurnRecord["status"] }) {
  const { text, icon, className } = looks[status];
  return (
    <span
      data-testid="turn-status"
      data-status={status}
      className={`flex shrink-0 items-center gap-1.5 text-xs font-medium ${className}`}
    >
      <Icon name={icon} className={icon === "spinner" ? "spin" : ""} />
      {text}
    </span>
  );
}
