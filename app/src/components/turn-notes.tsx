/** Notices of a turn: retries, tools that a client must run, failures that the turn survived, and its cost. */
import type { TurnState } from "../../../src/client/index.ts";
import { amountsText, calledText, count, wordsOf } from "../format.ts";
import { Icon } from "./icon.tsx";

export function TurnNotes({ turn }: { turn: TurnState }) {
  const { retrying, retries, status, issues } = turn;
  const last = retries.at(-1);
  if (retrying && last !== undefined) {
    return (
      <p
        data-testid="retry-notice"
        className="flex w-full items-start gap-2 rounded-xl bg-caution-tint px-4 py-3 text-sm text-caution"
      >
        <Icon name="spinner" className="spin mt-0.5" />
        <span className="min-w-0 wrap-anywhere">Retrying… {last.message}</span>
      </p>
    );
  }
  const awaited = status === "active" ? awaitedOf(turn) : [];
  if (awaited.length > 0) {
    return (
      <p
        data-testid="client-notice"
        className="w-full rounded-xl bg-caution-tint px-4 py-3 text-sm text-caution"
      >
        Waiting for the client. The program that sent this message runs {awaited.join(", ")} and has not sent
        the result yet. You cannot enter the result here.
      </p>
    );
  }
  const notes = [
    ...(retries.length > 0 && status !== "failed"
      ? [`Answered after ${count(retries.length, "retry", "retries")}`]
      : []),
    ...(issues?.toolFailures ? [count(issues.toolFailures, "tool call failed", "tool calls failed")] : []),
    ...(issues?.memoryExtractionFailed === true ? ["No memory was saved because extraction failed"] : []),
    ...(issues?.emptyReply === true ? ["The model gave an empty reply"] : []),
    ...(issues?.replyPaused === true ? ["The provider paused the reply, so it is incomplete"] : []),
    ...(turn.silent ? [`${wordsOf(turn.agentId)} chose not to answer`] : []),
    ...(issues?.notAsked === undefined
      ? []
      : [`Not asked: ${issues.notAsked.join(", ")}. The limit of agent turns is reached`]),
    ...costOf(turn),
  ];
  return notes.length === 0 || status === "active" ? null : (
    <p data-testid="turn-notes" className="ml-2 text-xs text-muted">
      {notes.join(" · ")}
    </p>
  );
}

/** Returns the names of the tools that wait for a result of the client. */
function awaitedOf({ items }: TurnState): string[] {
  return items.flatMap((item) => {
    if (item.type !== "tool" || item.operation.state !== "running" || item.operation.client !== true)
      return [];
    return [item.operation.name];
  });
}

/** Returns the usage of the turn and of the work that it called, if it called a model. */
function costOf({ spent, items }: TurnState): string[] {
  if (spent === undefined || spent.tokens === 0) return [];
  const operations = items.flatMap((item) => (item.type === "tool" ? [item.operation] : []));
  const called = calledText({
    hasAgents: operations.some(({ agent }) => agent !== undefined),
    hasRuns: operations.some(({ runId }) => runId !== undefined),
  });
  const text = `${amountsText(spent)}${called === undefined ? "" : ` with ${called}`}`;
  return [spent.estimated ? `About ${text}` : text];
}
