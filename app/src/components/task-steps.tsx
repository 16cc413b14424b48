/** The steps of a task under its call, with the status, the time and the error of each step. */
import type { OperationState } from "../../../src/client/index.ts";
import { amountsText, durationText } from "../format.ts";
import { Icon, type IconName } from "./icon.tsx";

type TaskView = NonNullable<OperationState["task"]>;
type StepStatus = TaskView["steps"][number]["status"];

const looks: Record<StepStatus, { text: string; icon: IconName; className: string }> = {
  completed: { text: "Done", icon: "check", className: "text-accent" },
  succeeded: { text: "Ended the task", icon: "check", className: "text-accent" },
  skipped: { text: "Skipped", icon: "chevron", className: "text-muted" },
  failed: { text: "Failed", icon: "cross", className: "text-danger" },
  ended: { text: "Ended the task as a failure", icon: "cross", className: "text-danger" },
};

export function TaskSteps({ task: { task, steps, durationMs, models } }: { task: TaskView }) {
  const name = `${task.library}/${task.id}@${task.version}`;
  return (
    <section aria-label={`Steps of ${name}`} data-testid="task-steps">
      <h4 className="mb-1 flex flex-wrap gap-x-2 text-xs font-medium text-muted">
        <span>Steps</span>
        <span className="font-mono font-normal wrap-anywhere">{name}</span>
        <span className="font-normal">{durationText(durationMs)}</span>
        {models !== undefined && (
          <span className="font-normal">
            {amountsText({ tokens: models.inputTokens + models.outputTokens, usd: models.costUsd ?? 0 })}
          </span>
        )}
      </h4>
      <ol className="space-y-1">
        {steps.map(({ ref, status, durationMs: took, attempts = 1, error }) => {
          const { text, icon, className } = looks[status];
          return (
            <li key={ref} data-testid="task-step" data-status={status} className="text-xs">
              <div className="flex flex-wrap items-center gap-x-2">
                <Icon name={icon} className={className} />
                <span className="font-mono wrap-anywhere">{ref}</span>
                <span className={className}>{text}</span>
                {attempts > 1 && <span className="text-muted">{attempts} attempts</span>}
                {status !== "skipped" && <span className="text-muted">{durationText(took)}</span>}
              </div>
              {error !== undefined && (
                <p className="pl-6 wrap-anywhere text-danger">
                  {error.message} <span className="font-mono">{error.code}</span>
                </p>
              )}
            </li>
          );
        })}
      </ol>
    </section>
  );
}
