/** Replays a turn with the deployed code on its recorded results. */
import { useState } from "react";
import type { TurnReplay, TurnView } from "../../../../src/client/index.ts";
import { client } from "../../client.ts";
import { problemText } from "../../format.ts";
import { ErrorNote } from "../error-note.tsx";
import { Icon } from "../icon.tsx";
import { JsonView } from "../json-view.tsx";

export function ReplayView({ turn }: { turn: TurnView }) {
  const { conversationId, id, status } = turn;
  const [result, setResult] = useState<TurnReplay | undefined>(undefined);
  const [error, setError] = useState<unknown>(undefined);
  const [working, setWorking] = useState(false);

  async function replay() {
    setWorking(true);
    setError(undefined);
    try {
      setResult(await client.turns.replay(conversationId, id));
    } catch (thrown) {
      setError(thrown);
    } finally {
      setWorking(false);
    }
  }

  if (status === "active")
    return <p className="px-1 py-2 text-sm text-muted">A replay is possible after the end of the turn.</p>;
  return (
    <section aria-label="Replay" data-testid="replay-view" className="space-y-3">
      <p className="max-w-2xl text-sm text-muted">
        The deployed code plans the turn again on its recorded results. It calls no model and no tool, and
        writes nothing.
      </p>
      <button
        type="button"
        disabled={working}
        onClick={() => void replay()}
        data-testid="replay"
        className="rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent disabled:opacity-60"
      >
        {working ? "Replaying…" : "Replay turn"}
      </button>
      {error !== undefined && <ErrorNote text={problemText(error)} />}
      {result !== undefined && <Result result={result} />}
    </section>
  );
}

function Result({ result: { calls, divergence, partial = [] } }: { result: TurnReplay }) {
  const isEqual = divergence === null;
  return (
    <div role="status" data-testid="replay-result" className="space-y-3">
      <p className={`flex items-center gap-2 text-sm font-medium ${isEqual ? "text-accent" : "text-danger"}`}>
        <Icon name={isEqual ? "check" : "alert"} />
        {isEqual
          ? "Equal: the deployed code decides as recorded."
          : `Divergence at entry ${divergence.seq}: the deployed code decides differently.`}
      </p>
      <p className="text-sm text-muted">{calls} calls of models, tools and other actors</p>
      {divergence !== null && (
        <div className="grid gap-3 md:grid-cols-2">
          <JsonView label="Recorded" value={divergence.expected ?? "No entry"} />
          <JsonView label="Today" value={divergence.actual ?? "No entry"} />
        </div>
      )}
      {partial.length > 0 && <JsonView label="Taken as recorded" value={partial} />}
    </div>
  );
}
