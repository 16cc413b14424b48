/** The questions of a run that wait for a person, and the banner that leads to them. */
import { type RefObject, useCallback, useRef, useState } from "react";
import type { GateView, RunView, WorkflowDefinition } from "../../../src/client/index.ts";
import type { UseRunResult } from "../../../src/client/react/index.ts";
import type { GateTexts } from "../runs/gate-form.ts";
import type { RunLog } from "../runs/run-log.ts";
import { answerText, stepText } from "../runs/run-texts.ts";
import { GateCard } from "./gate-card.tsx";
import { Icon } from "./icon.tsx";

/** The texts that the reader typed into the questions of a run, by operation. They outlive the cards: a change of layout mounts new cards. */
export type GateDrafts = Map<string, { gate: GateView; texts: GateTexts }>;

interface GatesBannerProps {
  count: number;
  /** A rule may exclude the user of the page from an answer. */
  hasRule: boolean;
  onAnswer: () => void;
}

export function GatesBanner({ count, hasRule, onAnswer }: GatesBannerProps) {
  return (
    <div
      role="status"
      data-testid="gates-banner"
      className={count === 0 ? "sr-only" : "flex items-center gap-3 bg-caution-tint px-4 py-2 text-sm"}
    >
      {count > 0 && (
        <>
          <Icon name="alert" className="text-caution" />
          <p className="min-w-0 flex-1">
            {count === 1 ? "A question waits for " : `${count} questions wait for `}
            {hasRule ? "an answer." : "your answer."}
          </p>
          <button
            type="button"
            onClick={onAnswer}
            className="shrink-0 rounded-lg bg-accent px-3 py-2 font-medium text-on-accent"
          >
            {count === 1 ? "Show question" : "Show questions"}
          </button>
        </>
      )}
    </div>
  );
}

/** Shows the first question, and gives it the focus. */
export function showQuestion(): void {
  const question = document.querySelector<HTMLElement>("[data-question]");
  question?.closest("form")?.scrollIntoView({ block: "start" });
  question?.focus({ preventScroll: true });
}

interface RunGatesProps {
  run: RunView;
  log: RunLog;
  definition: WorkflowDefinition | undefined;
  drafts: RefObject<GateDrafts>;
  answer: UseRunResult["answer"];
}

export function RunGates({ run, log, definition, drafts, answer }: RunGatesProps) {
  const section = useRef<HTMLElement>(null);
  const [note, setNote] = useState("");
  const [, setTyped] = useState(0);
  // An ended run asks no questions, even before it is reloaded.
  const gates = log.end === undefined ? run.gates : [];
  const open = new Set(gates.map(({ operationId }) => operationId));
  const lost = [...drafts.current.values()].filter(({ gate }) => !open.has(gate.operationId));
  const takeFocus = useCallback(() => section.current?.focus(), []);

  function done(operationId: string, text: string) {
    drafts.current.delete(operationId);
    setNote(text);
  }

  return (
    <section
      ref={section}
      tabIndex={-1}
      aria-label="Questions"
      data-testid="gates"
      className="space-y-3 empty:hidden"
    >
      {gates.map((gate) => {
        const { operationId } = gate;
        return (
          <GateCard
            key={operationId}
            gate={gate}
            place={placeOf(gate, definition)}
            texts={drafts.current.get(operationId)?.texts ?? {}}
            onType={(texts) => {
              drafts.current.set(operationId, { gate, texts });
              setTyped((count) => count + 1);
            }}
            answer={(given) => answer(operationId, given)}
            onDone={(text) => done(operationId, text)}
            onLeave={takeFocus}
          />
        );
      })}
      {lost.map(({ gate, texts }) => (
        <LostDraft
          key={gate.operationId}
          text={lostText(gate, log)}
          texts={texts}
          onClose={() => {
            drafts.current.delete(gate.operationId);
            setTyped((count) => count + 1);
            takeFocus();
          }}
        />
      ))}
      <p role="status" data-testid="gates-note" className="px-1 text-sm text-muted wrap-anywhere">
        {note}
      </p>
    </section>
  );
}

interface LostDraftProps {
  text: string;
  texts: GateTexts;
  onClose: () => void;
}

/** The text that the reader typed into a question that has closed. */
function LostDraft({ text, texts, onClose }: LostDraftProps) {
  const typed = Object.values(texts).filter((value) => value !== "");
  return (
    <div
      role="alert"
      data-testid="lost-draft"
      className="space-y-2 rounded-xl border border-line bg-sunken p-3 text-sm"
    >
      <p className="wrap-anywhere">{text}</p>
      {typed.map((value) => (
        <pre key={value} className="font-mono text-xs whitespace-pre-wrap wrap-anywhere">
          {value}
        </pre>
      ))}
      <button type="button" onClick={onClose} className="py-1 font-medium text-accent hover:underline">
        Discard text
      </button>
    </div>
  );
}

function lostText({ prompt, node, token }: GateView, log: RunLog): string {
  const answers =
    token === undefined
      ? log.answers
      : log
          .visits(node ?? "")
          .tokens.flatMap(({ id, answer }) => (id === token && answer !== undefined ? [answer] : []));
  const answer = answers.at(-1);
  const end = answer === undefined ? "This question has closed" : answerText(answer);
  return `${end}: ${prompt} Your text was not sent.`;
}

function placeOf({ node }: GateView, definition: WorkflowDefinition | undefined): string {
  if (node === undefined) return stepText(undefined);
  return stepText(definition?.nodes.find(({ ref }) => ref === node)?.name ?? node);
}
