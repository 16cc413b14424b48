/**
 * A tool call that waits for a person: its name, its task, its exact input, and the buttons that answer. The focus stays in the turn when
 * the card is removed.
 */
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { DramatisClientError, type OperationState, whoMayAnswer } from "../../../src/client/index.ts";
import { isJsonObject } from "../../../src/shared/json.ts";
import { type ApprovalActions, isExcluded, NOT_YOU } from "../approvals.ts";
import { ConversationId } from "../conversation-id.ts";
import { repositoryOf } from "../files/tool-views.ts";
import { messageOf, momentOf } from "../format.ts";
import { useExcluded } from "../hooks/use-excluded.ts";
import { filesPath } from "../route.ts";
import { answerOf, errorsAt, type GateErrors, type GateTexts, inputFields } from "../runs/gate-form.ts";
import { ElicitedQuestion } from "./elicited-question.tsx";
import { ErrorNote } from "./error-note.tsx";
import { Icon } from "./icon.tsx";
import { InputView } from "./input-view.tsx";
import { JsonView } from "./json-view.tsx";
import { Link } from "./link.tsx";
import { PolicyNote } from "./policy-note.tsx";

interface ApprovalCardProps {
  operation: OperationState;
  /** The agent that asks, if it is another agent than this conversation's. */
  asker?: string;
  actions: ApprovalActions;
  /** Receives the error if another answer came first. That answer removes the card. */
  onLate: (text: string) => void;
  /** Takes the focus if the card has it when it is removed. */
  onLeave: () => void;
}

export function ApprovalCard({ operation, asker, actions, onLate, onLeave }: ApprovalCardProps) {
  const { id, name, input, modelInput, target, approval } = operation;
  const title = useId();
  const card = useRef<HTMLFieldSetElement>(null);
  const [sending, setSending] = useState<"approved" | "denied" | null>(null);
  const [reason, setReason] = useState("");
  const [error, setError] = useState<unknown>(undefined);
  const conversationId = useContext(ConversationId);
  const question = approval?.elicitation;
  const [texts, setTexts] = useState<GateTexts>({});
  const [errors, setErrors] = useState<GateErrors>(new Map());
  const fields = isJsonObject(question?.schema) ? inputFields(question.schema) : [];
  const rule = approval?.rule;
  const excluded = useExcluded(approval ?? {});
  const isDisabled = sending !== null || excluded || isExcluded(error);

  useLayoutEffect(() => {
    const element = card.current;
    return () => {
      if (element?.contains(document.activeElement)) onLeave();
    };
  }, [onLeave]);

  const { connected } = actions;
  // The request may have failed because the connection was lost. Clear the error when it returns.
  useEffect(() => {
    const clear = () => setError(undefined);
    if (connected) clear();
    window.addEventListener("online", clear);
    return () => window.removeEventListener("online", clear);
  }, [connected]);

  async function resolve(approved: boolean) {
    if (isDisabled) return;
    const made = approved ? answerOf(fields, texts) : { answer: {} };
    setErrors("errors" in made ? made.errors : new Map());
    if ("errors" in made) return;
    const values =
      approved && question !== undefined && isJsonObject(made.answer)
        ? { values: made.answer, round: question.round }
        : {};
    setSending(approved ? "approved" : "denied");
    setError(undefined);
    const given = reason.trim();
    try {
      await actions.resolve(id, {
        approved,
        ...values,
        ...(approved || given === "" ? {} : { reason: given }),
      });
    } catch (failure) {
      if (failure instanceof DramatisClientError && failure.code === "CONFLICT")
        onLate(`Your ${approved ? "approval" : "denial"} came too late and has no effect. ${failure.detail}`);
      else if (
        failure instanceof DramatisClientError &&
        failure.code === "INVALID_INPUT" &&
        failure.errors.length > 0
      )
        setErrors(errorsAt(fields, failure.errors, "/values"));
      else setError(failure);
      setSending(null);
    }
  }

  return (
    <fieldset
      ref={card}
      aria-labelledby={title}
      data-testid="approval"
      data-tool={name}
      className="space-y-3 rounded-xl border border-caution bg-surface p-3 text-sm"
    >
      <p id={title} className="flex flex-wrap items-center gap-x-2 gap-y-1">
        <Icon name="alert" className="text-caution" />
        <span className="font-medium">{titleOf(asker, question !== undefined)}</span>
        <span className="font-mono text-[0.8125rem]">{name}</span>
        {approval?.expiresAt !== undefined && (
          <span className="text-xs text-muted">
            waits until <time dateTime={approval.expiresAt}>{momentOf(approval.expiresAt, new Date())}</time>
          </span>
        )}
      </p>
      {rule !== undefined && (
        <p className="text-xs text-muted">
          {whoMayAnswer(rule)} {excluded && NOT_YOU}
        </p>
      )}
      {approval?.policy !== undefined && <PolicyNote decided={approval.policy} />}
      {name === "repo_commit" && asker === undefined && (
        <Link
          to={filesPath({ conversation: conversationId }, "changes", {
            repo: repositoryOf(operation),
            against: "head",
          })}
          className="inline-block py-0.5 text-accent underline pointer-coarse:py-2.5"
        >
          Read the changes
        </Link>
      )}
      {target !== undefined && (
        <p>
          Runs <span className="font-mono text-[0.8125rem]">{target}</span>
        </p>
      )}
      {input === undefined ? (
        <p className="text-muted">
          The input is too large to show here. Open the agent’s conversation to approve it.
        </p>
      ) : (
        <InputView value={input} />
      )}
      {input !== undefined && modelInput !== undefined && (
        <JsonView label="Input as the model wrote it" value={modelInput} exact />
      )}
      {question !== undefined && (
        <ElicitedQuestion {...{ question, fields, texts, errors }} onType={setTexts} />
      )}
      <label className="block text-xs text-muted">
        Reason for a denial (optional)
        <input
          type="text"
          value={reason}
          maxLength={500}
          onChange={({ target }) => setReason(target.value)}
          className="mt-1 block w-full rounded-lg border border-line bg-surface px-2.5 py-1.5 text-sm text-ink"
        />
      </label>
      <div className="flex gap-2">
        {/* Disabled buttons would lose the focus. */}
        {input !== undefined && (
          <button
            type="button"
            aria-disabled={isDisabled}
            onClick={() => void resolve(true)}
            className="rounded-xl bg-accent px-4 py-2 font-medium text-on-accent aria-disabled:bg-line aria-disabled:text-muted"
          >
            {question !== undefined
              ? sending === "approved"
                ? "Sending…"
                : "Send answer"
              : sending === "approved"
                ? "Approving…"
                : "Approve"}
          </button>
        )}
        <button
          type="button"
          aria-disabled={isDisabled}
          onClick={() => void resolve(false)}
          className="rounded-xl border border-line px-4 py-2 font-medium text-danger hover:bg-sunken aria-disabled:text-muted"
        >
          {sending === "denied" ? "Denying…" : "Deny"}
        </button>
      </div>
      {error !== undefined && <ErrorNote text={messageOf(error)} />}
    </fieldset>
  );
}

function titleOf(asker: string | undefined, isQuestion: boolean): string {
  if (isQuestion)
    return asker === undefined ? "A server asks you" : `A server asks you, in the work of ${asker}`;
  const title = "Approve this call?";
  return asker === undefined ? title : `${asker} asks: ${title.charAt(0).toLowerCase()}${title.slice(1)}`;
}
