/** A tool call. Closed, it shows the input, the status and the progress; open, it shows all details. */
import { useState } from "react";
import type { OperationState } from "../../../src/client/index.ts";
import { filePreview, repositoryOf, toolView } from "../files/tool-views.ts";
import { approvalText, inputPreview, wordsOf } from "../format.ts";
import { runPath } from "../route.ts";
import { CalledAgent } from "./called-agent.tsx";
import { DecisionNote } from "./decision-note.tsx";
import { FileToolView } from "./files/file-tool-view.tsx";
import { exitText } from "./files/terminal-view.tsx";
import { Icon, type IconName } from "./icon.tsx";
import { JsonView } from "./json-view.tsx";
import { Link } from "./link.tsx";
import { TaskSteps } from "./task-steps.tsx";
import { ToolProgress } from "./tool-progress.tsx";

type Look = { text: string; icon: IconName; className: string };

const looks: Record<
  OperationState["state"] | "waiting" | "held" | "background" | "deferred" | "denied",
  Look
> = {
  running: { text: "Running", icon: "spinner", className: "text-muted" },
  background: { text: "Running in the background", icon: "spinner", className: "text-muted" },
  deferred: { text: "Waiting for a result", icon: "clock", className: "text-caution" },
  held: { text: "Waits for a person", icon: "clock", className: "text-caution" },
  waiting: { text: "Waiting for the client", icon: "clock", className: "text-caution" },
  awaiting_approval: { text: "Waiting for approval", icon: "clock", className: "text-caution" },
  completed: { text: "Done", icon: "check", className: "text-accent" },
  failed: { text: "Failed", icon: "cross", className: "text-danger" },
  denied: { text: "Denied", icon: "cross", className: "text-danger" },
  cancelled: { text: "Stopped", icon: "stop", className: "text-muted" },
};

interface ToolCardProps {
  operation: OperationState;
  /** The turn is active. A running tool of an ended turn was stopped. */
  active: boolean;
}

export function ToolCard({ operation, active }: ToolCardProps) {
  const { name, input, modelInput, state, result, error, progress, agent, task } = operation;
  const { approval = {}, attempt = 1, runId } = operation;
  const [open, setOpen] = useState(false);
  const shown = lookOf(operation, active);
  const view = toolView(operation);
  const exitCode = view?.type === "terminal" ? (view.result?.exitCode ?? 0) : 0;
  const { text, icon, className } =
    exitCode === 0 ? looks[shown] : { ...looks.failed, text: exitText(exitCode) };
  // The conversation of the agent begins with the input and ends with the result.
  const hasConversation = agent?.conversationId !== undefined && !reachedNobody(error);
  const answered = approvalText(approval, new Date());
  const failedSteps =
    state === "completed" ? (task?.steps ?? []).filter(({ status }) => status === "failed") : [];
  return (
    <details
      data-testid="tool-card"
      data-tool={name}
      data-state={shown}
      onToggle={(event) => {
        // Toggle events of nested cards bubble up to this card.
        if (event.target === event.currentTarget) setOpen(event.currentTarget.open);
      }}
      className="rounded-xl border border-line bg-surface text-sm"
    >
      <summary className="flex flex-wrap items-center gap-x-2 gap-y-1 rounded-xl px-3 py-2.5 [&::-webkit-details-marker]:hidden">
        <Icon
          name="chevron"
          className="text-muted transition-transform [details[open]>summary>&]:rotate-90"
        />
        <ToolName name={name} agent={agent} />
        <span className="min-w-0 flex-1 truncate text-muted">
          {filePreview(operation) ?? inputPreview(input, agent !== undefined)}
        </span>
        <span className={`flex shrink-0 items-center gap-1.5 text-xs ${className}`}>
          <Icon name={icon} className={icon === "spinner" ? "spin" : ""} />
          {text}
        </span>
        {answered !== undefined && (
          <span data-testid="approval-outcome" className="w-full pl-6 text-xs text-muted wrap-anywhere">
            {answered}
          </span>
        )}
        {shown === "denied" && (
          <span data-testid="denied" className="w-full pl-6 text-xs text-muted wrap-anywhere">
            {error?.message}
          </span>
        )}
        {failedSteps.length > 0 && (
          <span data-testid="failed-steps" className="w-full pl-6 text-xs text-danger wrap-anywhere">
            {failedSteps.length === 1 ? "A step failed" : `${failedSteps.length} steps failed`}:{" "}
            {failedSteps.map(({ ref }) => ref).join(", ")}
          </span>
        )}
        {shown === "held" && runId !== undefined && (
          <Link to={runPath(runId)} className="ml-6 py-1 text-xs text-accent underline pointer-coarse:py-2.5">
            Open the run
          </Link>
        )}
        {active && state === "running" && <ToolProgress operation={operation} />}
      </summary>

      <div className="space-y-3 border-t border-line px-3 py-3">
        {open && hasConversation && <CalledAgent agent={agent} />}
        {open && (shown === "denied" || approval.outcome !== undefined) && (
          <DecisionNote operation={operation} />
        )}
        {open && view !== undefined && <FileToolView view={view} repo={repositoryOf(operation)} />}
        {!hasConversation && view === undefined && <JsonView label="Input" value={input} />}
        {modelInput !== undefined && <JsonView label="Input as the model wrote it" value={modelInput} />}
        {attempt > 1 && <p className="text-xs text-muted">Attempt {attempt}</p>}
        {runId !== undefined && (
          <p data-testid="run" className="text-xs text-muted">
            Run{" "}
            <Link to={runPath(runId)} className="font-mono wrap-anywhere text-accent underline">
              {runId}
            </Link>
          </p>
        )}
        {task !== undefined && <TaskSteps task={task} />}
        {state === "running" && hasMoreToShow(progress) && <JsonView label="Progress" value={progress} />}
        {state === "completed" && !hasConversation && view === undefined && (
          <JsonView label="Result" value={result} />
        )}
        {error !== undefined && shown !== "denied" && !isToldBy(task?.steps ?? [], error) && (
          <div>
            <h4 className="mb-1 text-xs font-medium text-muted">
              {state === "cancelled" ? "Stopped" : "Error"}
            </h4>
            <p className={`wrap-anywhere ${state === "cancelled" ? "" : "text-danger"}`}>
              {error.message} <span className="font-mono text-xs">{error.code}</span>
            </p>
          </div>
        )}
      </div>
    </details>
  );
}

/** Reports whether a failed step shows the error of its task already. */
function isToldBy(
  steps: readonly { error?: { message: string } }[],
  { message }: { message: string },
): boolean {
  return steps.some(({ error }) => error !== undefined && message.endsWith(error.message));
}

/** Reports whether a progress report has more than the line of the closed card shows. */
function hasMoreToShow(progress: unknown): boolean {
  if (typeof progress !== "object" || progress === null) return false;
  return Object.keys(progress).some((name) => !["step", "percent", "done", "total"].includes(name));
}

/** Reports whether a call of an agent failed before the agent had a conversation for it. */
function reachedNobody(error: OperationState["error"]): boolean {
  return error !== undefined && ["NOT_FOUND", "PERMISSION_DENIED", "INVALID_INPUT"].includes(error.code);
}

/** The name of a tool, or of the agent that answers it. */
function ToolName({ name, agent }: { name: string; agent: OperationState["agent"] | undefined }) {
  if (agent === undefined)
    return <span className="shrink-0 font-mono text-[0.8125rem] font-medium">{name}</span>;
  return (
    <span className="flex shrink-0 items-center gap-1.5 font-medium">
      <Icon name="agent" className="text-accent" />
      {wordsOf(agent.id)}
      {agent.template !== undefined && (
        <span className="font-normal text-muted">as {wordsOf(agent.template)}</span>
      )}
    </span>
  );
}

function lookOf(
  { state, client, async: isAsync, deferredUntil, held, agent, error, approval }: OperationState,
  active: boolean,
): keyof typeof looks {
  if (
    state === "failed" &&
    error?.code === "PERMISSION_DENIED" &&
    (approval?.outcome ?? "approved") === "approved"
  )
    return "denied";
  const isOver = state !== "running" && state !== "awaiting_approval";
  if (isOver) return state;
  if (!active) return "cancelled";
  if (state === "awaiting_approval" || (agent?.asks ?? []).length > 0) return "awaiting_approval";
  if (held === true) return "held";
  if (client === true) return "waiting";
  if (deferredUntil !== undefined) return "deferred";
  return isAsync === true ? "background" : "running";
}
