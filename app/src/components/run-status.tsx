/** The status of a run. */
import type { RunStatus } from "../../../src/client/index.ts";
import { STATUS_TEXT } from "../runs/run-texts.ts";
import { StatusBadge, type StatusLook } from "./status-badge.tsx";

const looks: Record<RunStatus, StatusLook> = {
  running: { icon: "spinner", className: "text-accent" },
  waiting: { icon: "clock", className: "text-caution" },
  completed: { icon: "check", className: "text-accent" },
  failed: { icon: "cross", className: "text-danger" },
  timed_out: { icon: "clock", className: "text-danger" },
  cancelled: { icon: "stop", className: "text-muted" },
};

export function RunStatusBadge({ status }: { status: RunStatus }) {
  return <StatusBadge kind="run" status={status} look={looks[status]} text={STATUS_TEXT[status]} />;
}
