/**
 * The request of a model call, below the list of the turn's calls.
 *
 * INSPECT-4  The list has a link for each model call of the turn. The address keeps the choice. Without a choice the newest call is shown.
 */
import { type ReactNode, useCallback } from "react";
import type { TurnPrompt, TurnView } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { isStopped, messageOf } from "../../format.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { turnPath, type TurnView as ViewName } from "../../route.ts";
import { ErrorNote } from "../error-note.tsx";
import { Link } from "../link.tsx";
import { Loading } from "../loading.tsx";

interface CallPromptProps {
  turn: TurnView;
  /** The number of the chosen call; the newest when absent. */
  call: number | undefined;
  view: ViewName;
  children: (prompt: TurnPrompt) => ReactNode;
}

export function CallPrompt({ turn, call, view, children }: CallPromptProps) {
  const { conversationId, id, calls } = turn;
  const number = call ?? (calls.length || undefined);
  const isOver = number !== undefined && calls[number - 1]?.outcome !== undefined;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the reply comes with the end of the call.
  const load = useCallback(
    (signal: AbortSignal) =>
      client.turns.prompt(conversationId, id, { signal, ...(number === undefined ? {} : { call: number }) }),
    [conversationId, id, number, isOver],
  );
  const { value, error, reload } = useResource(load);
  const isShown = value !== undefined && (number === undefined || value.call === number);
  return (
    <div className="space-y-3">
      {calls.length > 1 && <Calls turn={turn} number={number} view={view} />}
      {error !== undefined && <ErrorNote text={messageOf(error)} onRetry={reload} />}
      {error === undefined && !isShown && <Loading label="Loading the request" />}
      {error === undefined && isShown && children(value)}
    </div>
  );
}

function Calls({
  turn: { conversationId, id, calls },
  number,
  view,
}: {
  turn: TurnView;
  number: number | undefined;
  view: ViewName;
}) {
  return (
    <nav aria-label="Model calls of the turn" className="flex max-h-32 flex-wrap gap-1.5 overflow-y-auto">
      {calls.map(({ id: callId, model, outcome }, index) => (
        <Link
          key={callId}
          to={turnPath(conversationId, id, view, index + 1)}
          aria-current={index + 1 === number ? "true" : undefined}
          data-testid={`call-${index + 1}`}
          className="max-w-full truncate rounded-lg border border-line bg-surface px-2.5 py-1 text-xs hover:border-accent aria-[current=true]:border-accent aria-[current=true]:font-medium"
        >
          Call {index + 1} <span className="text-muted">{model}</span>
          {outcome === undefined && <span className="text-muted"> · running</span>}
          {outcome?.ok === false && (
            <span className={isStopped(outcome.errorCategory) ? "" : "text-danger"}>
              {" "}
              · {outcome.errorCategory}
            </span>
          )}
        </Link>
      ))}
    </nav>
  );
}
