/** The run as a whole: its times and its error, and its input, state and output. */
import type { RunView } from "../../../src/client/index.ts";
import { amountsText, momentOf } from "../format.ts";
import type { GateAnswer, RunEnd } from "../runs/run-log.ts";
import { answerText, lasted, workflowName } from "../runs/run-texts.ts";
import { JsonView } from "./json-view.tsx";
import { Failure } from "./run-token.tsx";

function usageText({ modelCalls, ...amounts }: RunView["usage"]): string {
  return `${modelCalls} model ${modelCalls === 1 ? "call" : "calls"} · ${amountsText(amounts)}`;
}

interface RunFactsProps {
  run: RunView;
  end: RunEnd | undefined;
  /** The answers to the run's own questions for more time. */
  answers: readonly GateAnswer[];
}

export function RunFacts({ run, end, answers }: RunFactsProps) {
  const { id, workflow, startedBy, createdAt, usage } = run;
  const endedAt = end?.time ?? run.endedAt;
  const error = end?.error ?? run.error;
  const facts: [label: string, value: string][] = [
    ["Run", id],
    ["Workflow", workflowName(workflow)],
    ["Started", `${momentOf(createdAt, new Date())} by ${startedBy}`],
    ...answers.map((answer): [string, string] => [
      "More time",
      `${answerText(answer)}, ${momentOf(answer.time, new Date())}`,
    ]),
    ...(usage.modelCalls === 0 ? [] : [["Used", usageText(usage)] satisfies [string, string]]),
    ...(endedAt === undefined ? [] : [["Took", lasted(createdAt, endedAt) ?? ""] satisfies [string, string]]),
  ];
  return (
    <section aria-label="The run" data-testid="run-facts" className="space-y-3 text-sm">
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-0.5 text-xs">
        {facts.map(([label, value]) => (
          <div key={`${label} ${value}`} className="contents">
            <dt className="text-muted">{label}</dt>
            <dd className="wrap-anywhere">{value}</dd>
          </div>
        ))}
      </dl>
      {error !== undefined && <Failure title="Error" code={error.code} message={error.message} />}
    </section>
  );
}

export function RunValues({ run: { input, state, output } }: { run: RunView }) {
  return (
    <section aria-label="Values of the run" data-testid="run-values" className="space-y-3">
      <JsonView label="Input" value={input} exact />
      {Object.keys(state).length > 0 && <JsonView label="State" value={state} exact />}
      {output !== undefined && <JsonView label="Output" value={output} exact />}
    </section>
  );
}
