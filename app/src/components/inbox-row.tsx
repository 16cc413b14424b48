/** One request of the inbox as a row: the agent or the workflow, the subject, the main values of the input, and the age. A click opens it. */
import { type ReactNode, useId } from "react";
import type { WaitingApproval } from "../../../src/client/index.ts";
import { ageText, exactJson, inputPreview, momentOf, titleFrom } from "../format.ts";
import { readableMembers } from "../readable.ts";
import { workflowName } from "../runs/run-texts.ts";
import { Icon } from "./icon.tsx";

/** Values of the input in a row. */
const MAX_VALUES = 3;
const MAX_TEXT = 120;

/** The row has a border, so the card inside needs no border. */
const PLAIN = "*:data-testid:border-0 *:data-testid:p-0";

interface InboxRowProps {
  request: WaitingApproval;
  /** Returns the name of an agent. */
  nameOf: (agentId: string) => string;
  isOpen: boolean;
  onToggle: () => void;
  /** The request, with its answer. */
  children: ReactNode;
}

export function InboxRow({ request, nameOf, isOpen, onToggle, children }: InboxRowProps) {
  const { requestedAt, requester } = request;
  const body = useId();
  const now = new Date();
  const isTool = request.kind === "tool";
  const values = valuesOf(request.input);
  const title = rowTitle(request);
  return (
    <li
      data-testid="inbox-item"
      className={`rounded-xl border bg-surface ${isOpen ? "border-caution" : "border-line hover:border-accent"}`}
    >
      <button
        type="button"
        aria-expanded={isOpen}
        aria-controls={body}
        onClick={onToggle}
        className="flex w-full items-center gap-3 rounded-xl px-4 py-3 text-left text-sm"
      >
        <Icon name={isTool ? "tool" : "graph"} className="text-caution" />
        <span className="min-w-0 flex-1">
          <span
            className={`block font-medium ${isOpen ? "wrap-anywhere" : "truncate"} ${title === undefined ? "font-mono text-[0.8125rem]/5" : ""}`}
          >
            {title ?? (isTool && request.name)}
          </span>
          <span className="block truncate text-xs text-muted">
            {isTool ? nameOf(request.agentId) : workflowName(request.workflow)}
            {values !== "" && ` · ${values}`}
          </span>
        </span>
        {requester !== undefined && !isOpen && (
          <span className="max-w-32 truncate text-xs text-muted max-sm:sr-only">for {requester}</span>
        )}
        <time
          dateTime={requestedAt}
          title={momentOf(requestedAt, now)}
          className="shrink-0 text-xs text-muted tabular-nums"
        >
          {ageText(requestedAt, now)}
        </time>
        <Icon name="chevron" className={`text-muted ${isOpen ? "rotate-90" : ""}`} />
      </button>
      <div id={body} className={isOpen ? `space-y-2 px-4 pb-4 ${PLAIN}` : ""}>
        {isOpen && children}
      </div>
    </li>
  );
}

/** Returns the question of a request on one line, shortened; `undefined` for a call without a question. */
export function rowTitle(request: WaitingApproval): string | undefined {
  const question = request.kind === "tool" ? request.elicitation?.message : request.prompt;
  return question === undefined ? undefined : titleFrom(question, MAX_TEXT);
}

/** Returns the amounts and dates of an input, or the input itself if it has none of them, on one line. */
function valuesOf(input: unknown): string {
  const { members } = readableMembers(input);
  const text =
    members.length === 0
      ? inputPreview(input, false)
      : members
          .slice(0, MAX_VALUES)
          .map((member) => `${member.label}: ${member.text}`)
          .join(" · ");
  return exactJson(titleFrom(text, MAX_TEXT));
}
