/** The status of a run. */
import type { RunStatus } from "../../../src/client/index.ts";
import { STATUS_TEXT } from "../runs/run-texts.ts";
import { Icon, type IconName } from "./icon.tsx";

const looks: Record<RunStatus, { icon: IconName; className: string }> = {
  running: { icon: "spinner", className: "text-accent" },
  waiting: { icon: "clock", className: "text-caution" },
  completed: { icon: "check", className: "text-accent" },
  failed: { icon: "cross", className: "text-danger" },
  timed_out: { icon: "clock", className: "text-danger" },
  cancelled: { icon: "cross", className: "text-muted" },
};

export function RunStatusBadge({ status }: { status: RunStatus }) {
  const { icon, className } = looks[status];
  return (
    <span
      data-testid="run-status"
      data-status={status}
      className={`flex shrink-0 items-center gap-1.5 text-xs font-medium ${className}`}
    >
      <Icon name={icon} className={icon === "spinner" ? "spin" : ""} />
      {STATUS_TEXT[status]}
    </span>
  );
}
