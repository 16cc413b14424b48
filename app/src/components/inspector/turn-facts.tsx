/** The facts of a turn above its views: message, answer, status, person, times, tokens and cost. */
import { type TurnView, textOf } from "../../../../src/client/index.ts";
import { amountsText, calledText, durationText, momentOf, titleFrom } from "../../format.ts";
import { plainSnippet } from "../../inspector/plain-snippet.ts";
import { turnPath } from "../../route.ts";
import { Link } from "../link.tsx";
import { TurnStatusBadge } from "./turn-status.tsx";

/** Characters of the message, and of the answer. */
const [MAX_TEXT, MAX_ANSWER] = [200, 500];

interface TurnFactsProps {
  turn: TurnView;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
}

export function TurnFacts({ turn, nameOf }: TurnFactsProps) {
  const { usage, cost, spent, latencyMs, createdAt, calls, versions = [] } = turn;
  const attempts = calls.reduce((sum, { outcome }) => sum + (outcome?.attempts ?? 0), 0);
  const { toolFailures = 0 } = turn.issues ?? {};
  const called = calledText({
    hasAgents: turn.moves.some(({ toolCall }) => toolCall?.agent !== undefined),
    hasRuns: turn.moves.some(({ toolCall }) => toolCall?.runId !== undefined),
  });
  const facts: [label: string, value: string][] = [
    ["Agent", nameOf(turn.agentId)],
    ["Started by", starterOf(turn, nameOf)],
    ["Began", momentOf(createdAt, new Date())],
    ["Duration", latencyMs === null ? (turn.phase ?? "working") : durationText(latencyMs)],
    ["Tokens in", usage === null ? "not counted" : usage.inputTokens.toLocaleString()],
    ["Tokens out", usage === null ? "not counted" : usage.outputTokens.toLocaleString()],
    ["Cost", cost === null ? "no prices" : amountsText({ usd: cost }) || "$0"],
    ["Model calls", `${calls.length}${attempts > calls.length ? `, ${attempts} attempts` : ""}`],
    ["Tool calls", `${spent.toolCalls}${toolFailures > 0 ? `, ${toolFailures} failed` : ""}`],
  ];
  return (
    <section aria-label="Facts" className="space-y-3 rounded-xl border border-line bg-surface px-4 py-3">
      <div className="flex items-start gap-3">
        <h2 className="min-w-0 flex-1 text-sm font-medium wrap-anywhere">
          {titleFrom(textOf(turn.input), MAX_TEXT) || "A turn without a text"}
        </h2>
        <TurnStatusBadge status={turn.status} errorCode={turn.error?.code} issues={turn.issues} />
      </div>
      {turn.answer && (
        <p data-testid="turn-answer" className="line-clamp-3 text-sm text-muted wrap-anywhere">
          {titleFrom(plainSnippet({ snippet: textOf(turn.answer), marks: [] }).snippet, MAX_ANSWER)}
        </p>
      )}
      <dl className="grid grid-cols-3 gap-x-4 gap-y-2 lg:grid-cols-9">
        {facts.map(([label, value]) => (
          <div key={label} className="min-w-0">
            <dt className="text-xs text-muted">{label}</dt>
            <dd className="text-sm tabular-nums wrap-anywhere">{value}</dd>
          </div>
        ))}
      </dl>
      {called !== undefined && (
        <p className="text-xs text-muted">
          Tokens and cost without {called}. With {called}: {spent.estimated && "about "}
          {amountsText(spent)}.
        </p>
      )}
      <p className="text-xs text-muted wrap-anywhere">
        Correlation <span className="font-mono">{turn.correlationId}</span>
      </p>
      {versions.length > 1 && (
        <p className="flex flex-wrap gap-x-2 text-xs text-muted">
          Versions
          {versions.map((version, index) =>
            version === turn.id ? (
              <span key={version}>{index + 1} (this turn)</span>
            ) : (
              <Link
                key={version}
                to={turnPath(turn.conversationId, version)}
                className="text-accent underline"
              >
                {index + 1}
              </Link>
            ),
          )}
        </p>
      )}
    </section>
  );
}

/** Returns the person, the agent or the run that started a turn. */
function starterOf({ caller }: TurnView, nameOf: TurnFactsProps["nameOf"]): string {
  if (caller.type === "user") return caller.userId;
  return caller.type === "agent" ? nameOf(caller.agentId) : `the run ${caller.runId}`;
}
