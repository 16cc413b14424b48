/** The status of a turn. A turn that was stopped, and a completed turn with failed tools, have a mark of their own. */
import type { TurnRecord } from "../../../../src/client/index.ts";
import { STOP_CODE } from "../../format.ts";
import { StatusBadge, type StatusLook } from "../status-badge.tsx";

type Look = "active" | "completed" | "issues" | "failed" | "stopped";

const looks: Record<Look, StatusLook & { text: string }> = {
  active: { text: "Active", icon: "spinner", className: "text-accent" },
  completed: { text: "Completed", icon: "check", className: "text-accent" },
  issues: { text: "Completed, with issues", icon: "alert", className: "text-caution" },
  failed: { text: "Failed", icon: "cross", className: "text-danger" },
  stopped: { text: "Stopped", icon: "stop", className: "text-muted" },
};

interface TurnStatusProps {
  status: TurnRecord["status"];
  errorCode?: string | undefined;
  issues?: TurnRecord["issues"] | undefined;
}

function lookOf({ status, errorCode, issues }: TurnStatusProps): Look {
  if (errorCode === STOP_CODE) return "stopped";
  return status === "completed" && issues?.toolFailures ? "issues" : status;
}

export function TurnStatusBadge(props: TurnStatusProps) {
  const look = lookOf(props);
  return <StatusBadge kind="turn" status={look} look={looks[look]} text={looks[look].text} />;
}
