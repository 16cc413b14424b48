/**
 * A question to a person: its prompt, its input, the fields of the answer, and the buttons that send it. The focus stays with
 * the questions when the card is removed.
 */
import { type FormEvent, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { DramatisClientError, type GateView, whoMayAnswer } from "../../../src/client/index.ts";
import type { Json, JsonObject } from "../../../src/shared/json.ts";
import { isExcluded, NOT_YOU } from "../approvals.ts";
import { messageOf, momentOf } from "../format.ts";
import { useExcluded } from "../hooks/use-excluded.ts";
import { answerOf, errorsAt, fieldsOf, type GateErrors, type GateTexts } from "../runs/gate-form.ts";
import { ErrorNote } from "./error-note.tsx";
import { GateFields } from "./gate-field.tsx";
import { Icon } from "./icon.tsx";
import { InputView } from "./input-view.tsx";

/** A button that answers. */
type Verdict = "approve" | "deny" | "send";

const VERDICTS: Record<Verdict, { start: JsonObject; text: string; busy: string; done: string }> = {
  approve: { start: { approved: true }, text: "Approve", busy: "Approving…", done: "Approved." },
  deny: { start: { approved: false }, text: "Deny", busy: "Denying…", done: "Denied." },
  send: { start: {}, text: "Send answer", busy: "Sending…", done: "Your answer was sent." },
};

const LOOKS: Record<Verdict, string> = {
  approve: "bg-accent text-on-accent aria-disabled:bg-line",
  deny: "border border-line text-danger hover:bg-sunken",
  send: "bg-accent text-on-accent aria-disabled:bg-line",
};

const NO_ERRORS: GateErrors = new Map();

interface GateCardProps {
  gate: GateView;
  /** Its step, or the run. */
  place: string;
  /** The row above the card shows the question. The card has it for screen readers only. */
  isTitled?: boolean;
  /** The texts that the reader typed before. */
  texts: GateTexts;
  onType: (texts: GateTexts) => void;
  /** Sends the answer. */
  answer: (answer: Json) => Promise<unknown>;
  /** Gets a sentence about the outcome when this answer or an earlier answer closed the question. */
  onDone: (text: string) => void;
  /** Takes the focus if the card has it when it is removed. */
  onLeave: () => void;
}

export function GateCard({
  gate,
  place,
  isTitled = false,
  texts,
  onType,
  answer,
  onDone,
  onLeave,
}: GateCardProps) {
  const { kind, prompt, input, expiresAt, rule } = gate;
  const title = useId();
  const card = useRef<HTMLFormElement>(null);
  const [sending, setSending] = useState<Verdict | null>(null);
  const [errors, setErrors] = useState(NO_ERRORS);
  const [failure, setFailure] = useState<{ error: unknown; verdict: Verdict } | undefined>(undefined);
  const isRefused = isExcluded(failure?.error);
  const excluded = useExcluded(gate);
  const isDisabled = sending !== null || excluded || isRefused;
  const fields = fieldsOf(gate);
  const verdicts: Verdict[] = kind === "human.input" ? ["send"] : ["approve", "deny"];

  useLayoutEffect(() => {
    const element = card.current;
    return () => {
      if (element?.contains(document.activeElement)) onLeave();
    };
  }, [onLeave]);

  useEffect(() => {
    if (errors.size > 0) card.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [errors]);

  async function send(verdict: Verdict) {
    if (isDisabled) return;
    const { start, done } = VERDICTS[verdict];
    const made = answerOf(fields, texts, start);
    setFailure(undefined);
    setErrors("errors" in made ? made.errors : NO_ERRORS);
    if ("errors" in made) return;
    setSending(verdict);
    try {
      await answer(made.answer);
      onDone(done);
    } catch (error) {
      setSending(null);
      const { code = "", errors: issues = [] } = error instanceof DramatisClientError ? error : {};
      if (code === "CONFLICT" || code === "NOT_FOUND")
        onDone(`Your answer came too late and has no effect. ${messageOf(error)}`);
      else if (code === "INVALID_INPUT" && issues.length > 0) setErrors(errorsAt(fields, issues));
      else setFailure({ error, verdict });
    }
  }

  function submit(event: FormEvent) {
    event.preventDefault();
    // With two buttons, Enter in a field must not choose one of them.
    if (kind === "human.input") void send("send");
  }

  return (
    <form
      ref={card}
      noValidate
      onSubmit={submit}
      aria-labelledby={title}
      data-testid="gate"
      data-gate={gate.operationId}
      data-kind={kind}
      className="space-y-3 rounded-xl border border-caution bg-surface p-3 text-sm"
    >
      <div className="flex flex-wrap items-center gap-x-2 gap-y-1 text-xs text-muted">
        <Icon name="alert" className="text-caution" />
        <span className="min-w-0 wrap-anywhere">{place}</span>
        {expiresAt !== undefined && (
          <span>
            waits until <time dateTime={expiresAt}>{momentOf(expiresAt, new Date())}</time>
          </span>
        )}
      </div>
      <h2
        id={title}
        tabIndex={-1}
        data-question
        className={isTitled ? "sr-only" : "font-medium whitespace-pre-wrap wrap-anywhere"}
      >
        {prompt === "" ? "An answer is needed." : prompt}
      </h2>
      {rule !== undefined && (
        <p className="text-xs text-muted">
          {whoMayAnswer(rule)} {excluded && NOT_YOU}
        </p>
      )}
      {Object.keys(input).length > 0 && <InputView value={input} />}
      <GateFields {...{ fields, texts, errors, onType }} />
      <div className="flex flex-wrap gap-2">
        {/* Disabled buttons would lose the focus. */}
        {verdicts.map((verdict) => (
          <button
            key={verdict}
            type={verdict === "send" ? "submit" : "button"}
            aria-disabled={isDisabled}
            onClick={verdict === "send" ? undefined : () => void send(verdict)}
            className={`rounded-xl px-4 py-2.5 font-medium aria-disabled:text-muted ${LOOKS[verdict]}`}
          >
            {sending === verdict ? VERDICTS[verdict].busy : VERDICTS[verdict].text}
          </button>
        ))}
      </div>
      {failure !== undefined && (
        <ErrorNote
          text={messageOf(failure.error)}
          {...(!isRefused && { onRetry: () => void send(failure.verdict) })}
        />
      )}
    </form>
  );
}
