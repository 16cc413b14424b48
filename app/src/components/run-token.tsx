/** One visit of a node: input, output, attempts, errors and times. */
import { momentOf, STOP_CODE } from "../format.ts";
import { conversationPath, runPath } from "../route.ts";
import type { GateAnswer, RunToken } from "../runs/run-log.ts";
import { answerText, TOKEN_TEXT, tokenLasted } from "../runs/run-texts.ts";
import { JsonView } from "./json-view.tsx";
import { Link } from "./link.tsx";
import { TaskSteps } from "./task-steps.tsx";

interface RunTokenProps {
  token: RunToken;
  /** The node runs a task, a workflow or an agent. */
  hasOwner: boolean;
  /** The input of the run, which a node without a mapping gets. */
  runInput: unknown;
  isOpen: boolean;
}

export function RunTokenView({ token, hasOwner, runInput, isOpen }: RunTokenProps) {
  const { id, state, path, createdAt, startedAt, attempts, failures, error, output, task, prompt, answer } =
    token;
  const { conversationId, runId } = token;
  const took = tokenLasted(token);
  const hasInput = (hasOwner || runId !== undefined) && startedAt !== undefined;
  const last = failures.at(-1)?.error;
  const isTold = error !== undefined && last?.code === error.code && last.message === error.message;
  return (
    <details
      open={isOpen}
      data-testid="run-token"
      data-token={id}
      data-state={state}
      className="rounded-xl border border-line bg-surface text-sm"
    >
      <summary className="flex flex-wrap items-baseline gap-x-3 gap-y-0.5 rounded-xl px-3 py-2.5">
        <span className="font-medium">{TOKEN_TEXT[state]}</span>
        {path !== undefined && <span className="min-w-0 font-mono text-xs wrap-anywhere">{path}</span>}
        <span className="text-xs text-muted">
          {momentOf(startedAt ?? createdAt, new Date())}
          {took !== undefined && ` · ${took}`}
          {attempts > 1 && ` · ${attempts} attempts`}
        </span>
      </summary>
      <div className="space-y-3 border-t border-line px-3 py-3">
        <p className="text-xs text-muted">Token {id}</p>
        {conversationId !== undefined && (
          <Link
            to={conversationPath(conversationId)}
            className="inline-block py-1 text-accent underline pointer-coarse:py-2.5"
          >
            Conversation of its agent
          </Link>
        )}
        {runId !== undefined && (
          <Link to={runPath(runId)} className="inline-block py-1 text-accent underline pointer-coarse:py-2.5">
            Run of these branches
          </Link>
        )}
        {prompt !== undefined && (
          <p className="whitespace-pre-wrap wrap-anywhere" data-testid="question">
            {prompt}
          </p>
        )}
        {answer !== undefined && <AnswerNote answer={answer} />}
        {failures.map(({ attempt, time, error: failure }) => (
          <Failure
            key={attempt}
            title={`Attempt ${attempt} failed, ${momentOf(time, new Date())}`}
            code={failure.code}
            message={failure.message}
          />
        ))}
        {error !== undefined && !isTold && (
          <Failure title="Error" code={error.code} message={error.message} />
        )}
        {hasInput && <JsonView label="Input" value={"input" in token ? token.input : runInput} exact />}
        {task !== undefined && <TaskSteps task={task} />}
        {answer !== undefined && <JsonView label="Answer" value={answer.value} exact />}
        {output !== undefined && <JsonView label="Output" value={output} exact />}
      </div>
    </details>
  );
}

function AnswerNote({ answer }: { answer: GateAnswer }) {
  return (
    <p className="wrap-anywhere" data-testid="answer">
      {answerText(answer)}, <time dateTime={answer.time}>{momentOf(answer.time, new Date())}</time>
    </p>
  );
}

/** An error; in a neutral colour if it is a stop. */
export function Failure({ title, code, message }: { title: string; code: string; message: string }) {
  const isStop = code === STOP_CODE;
  return (
    <div>
      <h4 className="mb-1 text-xs font-medium text-muted">{isStop ? "Stopped" : title}</h4>
      <p className={`wrap-anywhere ${isStop ? "" : "text-danger"}`}>
        {message} <span className="font-mono text-xs">{code}</span>
      </p>
    </div>
  );
}
