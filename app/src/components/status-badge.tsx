/** The status of a turn or a run: an icon and a word. */
import { Icon, type IconName } from "./icon.tsx";

export interface StatusLook {
  icon: IconName;
  className: string;
}

export function StatusBadge({
  kind,
  status,
  look: { icon, className },
  text,
}: {
  kind: "turn" | "run";
  status: string;
  look: StatusLook;
  text: string;
}) {
  return (
    <span
      data-testid={`${kind}-status`}
      data-status={status}
      className={`flex shrink-0 items-center gap-1.5 text-xs font-medium ${className}`}
    >
      <Icon name={icon} className={icon === "spinner" ? "spin" : ""} />
      {text}
    </span>
  );
}
