/** The requests of a turn to its providers, the replies of the models, and the record of each call. */
import type { TurnPrompt, TurnView } from "../../../../src/client/index.ts";
import { amountsText, durationText, isStopped } from "../../format.ts";
import { missingText } from "../../inspector/prompt-texts.ts";
import { type Fact, Facts } from "../facts.tsx";
import { JsonView } from "../json-view.tsx";
import { CallPrompt } from "./call-prompt.tsx";
import { OperatorsOnly } from "./operators-only.tsx";
import { Panel } from "./panel.tsx";

export function RequestView({ turn, call }: { turn: TurnView; call: number | undefined }) {
  return (
    <div className="space-y-4">
      <Panel title="Request to the provider">
        <OperatorsOnly what="the requests of a turn to its models">
          <CallPrompt turn={turn} call={call} view="request">
            {(prompt) => <Request prompt={prompt} />}
          </CallPrompt>
        </OperatorsOnly>
      </Panel>
      <Panel title="Replies">
        <Replies turn={turn} />
      </Panel>
      <Panel title={`Model calls (${turn.calls.length})`}>
        {turn.calls.length === 0 && <p className="text-sm text-muted">The turn called no model.</p>}
        <ul className="space-y-2">
          {turn.calls.map((call) => (
            <li key={call.id}>
              <Call call={call} />
            </li>
          ))}
        </ul>
      </Panel>
    </div>
  );
}

function Request({ prompt }: { prompt: TurnPrompt }) {
  const { call, calls, provider, model, request, reply } = prompt;
  return (
    <div data-testid="provider-request" data-call={call} className="space-y-2">
      <p className="text-xs text-muted">
        {provider} · {model} · call {call} of {calls}, as the present code builds its request.{" "}
        {missingText(prompt)}
      </p>
      <JsonView label="Body" value={request} />
      {reply === undefined ? (
        <p className="text-xs text-muted">No reply of this call is stored.</p>
      ) : (
        <JsonView label="Reply" value={reply} />
      )}
    </div>
  );
}

function Replies({ turn: { moves, answer, output } }: { turn: TurnView }) {
  const replies = moves.filter(({ raw }) => raw !== undefined);
  return (
    <div data-testid="replies" className="space-y-3">
      {replies.map(({ id, raw, sequence }) => (
        <JsonView key={id} label={`Reply before step ${sequence}`} value={raw} />
      ))}
      {answer !== null && <JsonView label="Answer" value={answer} />}
      {output !== undefined && <JsonView label="Structured output" value={output} />}
      {replies.length === 0 && answer === null && (
        <p className="text-sm text-muted">The turn has no stored reply.</p>
      )}
    </div>
  );
}

function Call({ call }: { call: TurnView["calls"][number] }) {
  const { provider, model, requestId, usage, estimated, cost, outcome } = call;
  const tokens = usage ?? estimated;
  const took = outcome === undefined ? undefined : outcome.finishedAt - outcome.startedAt;
  const facts: Fact[] = [
    ["Result", outcome === undefined ? "still running" : outcome.ok ? "ok" : outcome.errorCategory],
    ["HTTP status", outcome?.status?.toString()],
    ["Attempts", outcome?.attempts.toString()],
    [
      "Tokens",
      tokens &&
        `${(tokens.inputTokens ?? 0).toLocaleString()} in · ${(tokens.outputTokens ?? 0).toLocaleString()} out${usage === undefined ? ", estimated" : ""}`,
    ],
    ["Cost", cost === undefined ? undefined : amountsText({ usd: cost }) || "$0"],
    ["Duration", took === undefined ? undefined : durationText(took)],
    ["Provider's id", requestId],
  ];
  return (
    <details className="rounded-lg border border-line px-3 py-2 text-xs">
      <summary className="flex flex-wrap gap-x-2">
        <span className="font-mono">{model}</span>
        <span className="text-muted">{provider}</span>
        {outcome?.ok === false && (
          <span className={isStopped(outcome.errorCategory) ? "" : "text-danger"}>
            {outcome.errorCategory}
          </span>
        )}
        {took !== undefined && <span className="ml-auto text-muted tabular-nums">{durationText(took)}</span>}
      </summary>
      <div className="space-y-2 pt-2">
        <Facts facts={facts} />
        <JsonView label="Record" value={call} />
      </div>
    </details>
  );
}
