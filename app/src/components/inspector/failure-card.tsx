/** The reason of a failed turn: its error, and the newest incidents before it (INSPECT-3). */
import { useCallback } from "react";
import type { TurnView, WireError } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { STOP_CODE } from "../../format.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { incidentText, KIND_TEXT } from "../../inspector/incident-texts.ts";
import { turnPath } from "../../route.ts";
import { Icon } from "../icon.tsx";
import { Link } from "../link.tsx";

/** Incidents that it shows. */
const MAX_INCIDENTS = 4;

interface FailureCardProps {
  turn: TurnView;
  error: WireError;
  hasIncidents: boolean;
}

export function FailureCard({ turn, error, hasIncidents }: FailureCardProps) {
  const isStop = error.code === STOP_CODE;
  return (
    <section
      aria-label={isStop ? "Reason of the stop" : "Reason of the failure"}
      data-testid="failure"
      className={`space-y-2 rounded-xl px-4 py-3 text-sm ${isStop ? "bg-sunken" : "bg-danger-tint"}`}
    >
      <h2 className={`flex items-center gap-2 font-medium ${isStop ? "text-muted" : "text-danger"}`}>
        <Icon name={isStop ? "stop" : "alert"} />
        {isStop ? "Stopped" : <span className="font-mono">{error.code}</span>}
      </h2>
      <p className="whitespace-pre-line wrap-anywhere">{error.message}</p>
      {hasIncidents && <Incidents turn={turn} />}
    </section>
  );
}

function Incidents({ turn: { conversationId, id } }: { turn: TurnView }) {
  const load = useCallback(
    (signal: AbortSignal) =>
      client.conversations.incidents(conversationId, {
        turn: id,
        order: "desc",
        // The end of the turn is an incident, too, and the card already has its error.
        limit: MAX_INCIDENTS + 1,
        signal,
      }),
    [conversationId, id],
  );
  const { value } = useResource(load);
  const incidents = value?.incidents.filter(({ type }) => type !== "turn.failed") ?? [];
  if (incidents.length === 0) return null;
  return (
    <>
      <h3 className="pt-1 text-xs font-medium text-muted">Incidents, the newest first</h3>
      <ul className="space-y-1 text-xs">
        {incidents.slice(0, MAX_INCIDENTS).map((incident) => (
          <li key={incident.seq} className="flex gap-2">
            <span className={`w-16 shrink-0 ${incident.kind === "stop" ? "text-muted" : "text-danger"}`}>
              {KIND_TEXT[incident.kind] ?? incident.kind}
            </span>
            <span className="min-w-0 wrap-anywhere">{incidentText(incident)}</span>
          </li>
        ))}
      </ul>
      <Link
        to={turnPath(conversationId, id, "incidents")}
        className="inline-block py-0.5 text-xs text-accent underline pointer-coarse:py-2"
      >
        All incidents with their causes
      </Link>
    </>
  );
}
