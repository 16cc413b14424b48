/** Status of the live connection. */
import type { ConnectionStatus } from "../../../src/client/index.ts";

const looks: Record<ConnectionStatus, { text: string; dot: string }> = {
  connecting: { text: "Connecting…", dot: "bg-muted skeleton" },
  open: { text: "Connected", dot: "bg-accent" },
  reconnecting: { text: "Reconnecting…", dot: "bg-caution skeleton" },
  closed: { text: "Disconnected", dot: "bg-danger" },
  unauthorized: { text: "Not authorized", dot: "bg-danger" },
};

export function ConnectionIndicator({
  status,
  onReconnect,
}: {
  status: ConnectionStatus;
  onReconnect: () => void;
}) {
  const { text, dot } = looks[status];
  return (
    <div className="flex shrink-0 items-center gap-2 text-xs text-muted">
      <span role="status" data-testid="connection" data-state={status} className="flex items-center gap-1.5">
        <span className={`size-2 rounded-full ${dot}`} aria-hidden="true" />
        <span className={status === "open" ? "max-sm:sr-only" : ""}>{text}</span>
      </span>
      {(status === "closed" || status === "unauthorized") && (
        <button type="button" onClick={onReconnect} className="font-medium text-accent hover:underline">
          Reconnect
        </button>
      )}
    </div>
  );
}
