/** The run as a whole: its times and its error, and its input, state and output. */
import type { RunView } from "../../../src/client/index.ts";
import { amountsText, momentOf } from "../format.ts";
import type { GateAnswer, RunEnd } from "../runs/run-log.ts";
import { answerText, lasted, workflowName } from "../runs/run-texts.ts";
import { type Fact, Facts } from "./facts.tsx";
import { JsonView } from "./json-view.tsx";
import { Failure } from "./run-token.tsx";

function usageText({ modelCalls, ...amounts }: RunView["usage"]): string {
  return `${modelCalls} model ${modelCalls === 1 ? "attempt" : "attempts"} · ${amountsText(amounts)}`;
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
  const facts: Fact[] = [
    ["Run", id],
    ["Workflow", workflowName(workflow)],
    ["Started", `${momentOf(createdAt, new Date())} by ${startedBy}`],
    ...answers.map(
      (answer): Fact => ["More time", `${answerText(answer)}, ${momentOf(answer.time, new Date())}`],
    ),
    ["Used", usage.modelCalls === 0 ? undefined : usageText(usage)],
    ["Took", lasted(createdAt, endedAt)],
  ];
  return (
    <section aria-label="The run" data-testid="run-facts" className="space-y-3 text-sm">
      <Facts facts={facts} />
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
