/** The filters of the list of turns. Choices apply at once, and texts with Enter or when the field loses the focus. */
import { type FormEvent, type ReactNode, useId, useState } from "react";
import type { AgentSummary } from "../../../../src/client/index.ts";
import { agentName } from "../../format.ts";
import { choiceOf, lastNight, NO_FILTER, searchOf, type TurnChoice } from "../../inspector/turn-filter.ts";
import { FIELD, Field } from "../field.tsx";

/** Browsers make selections lower than inputs. */
const FILTER = `${FIELD} h-11 sm:h-10`;

const BUTTON =
  "rounded-lg border border-line bg-surface px-3 py-1.5 text-sm hover:border-accent pointer-coarse:py-2.5";

const STATUSES = [
  ["", "All"],
  ["failed", "Failed"],
  ["stopped", "Stopped"],
  ["active", "Active"],
  ["completed", "Completed"],
] as const;

/** Filters that are hidden on small screens until one of them applies. */
const OTHERS = ["agent", "tool", "user", "since", "until"] as const;

const ROLES = [
  ["", "All"],
  ["agent", "From agents"],
  ["user", "From people"],
] as const;

/** Returns a label that is shorter on small screens. */
const last = (time: string) => (
  <>
    <span className="max-sm:sr-only">Last </span>
    {time}
  </>
);

const TIMES = [
  ["", "Any time"],
  ["24h", last("24 hours")],
  ["7d", last("7 days")],
] as const;

interface TurnFiltersProps {
  /** The query string of the filters that apply. */
  search: string;
  agents: readonly AgentSummary[];
  onChange: (choice: TurnChoice) => void;
}

export function TurnFilters({ search, agents, onChange }: TurnFiltersProps) {
  const value = choiceOf(search);
  const [draft, setDraft] = useState(value);
  const [applied, setApplied] = useState(search);
  const [isOpen, setIsOpen] = useState(OTHERS.some((name) => value[name] !== ""));
  const others = useId();
  const isSearch = value.text !== "";
  // The address may change by a link, and by the buttons of the browser.
  if (applied !== search) {
    setApplied(search);
    setDraft(value);
  }
  const apply = (choice: TurnChoice) => {
    if (searchOf(choice) !== searchOf(value)) onChange(choice);
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    apply(draft);
  };
  const text = (
    name: keyof TurnChoice,
    label: string,
    placeholder: string,
    more: Partial<TurnChoice> = {},
  ) => (
    <Field label={label}>
      {(control) => (
        <input
          {...control}
          placeholder={placeholder}
          value={draft[name]}
          onChange={({ target }) => setDraft({ ...draft, ...more, [name]: target.value })}
          onBlur={() => apply(draft)}
          autoComplete="off"
          autoCapitalize="off"
          spellCheck={false}
          className={FILTER}
        />
      )}
    </Field>
  );

  return (
    <search>
      <form aria-label="Filter turns" onSubmit={submit} data-testid="turn-filters" className="space-y-3">
        <div className="flex flex-wrap items-center gap-2">
          <Choices
            label={isSearch ? "Author" : "Status"}
            choices={isSearch ? ROLES : STATUSES}
            value={isSearch ? value.role : value.status}
            onChoose={(name) => apply({ ...draft, [isSearch ? "role" : "status"]: name })}
          />
          <Choices
            label="Time"
            choices={TIMES}
            value={value.since + value.until === "" ? value.last : undefined}
            onChoose={(last) => apply({ ...draft, last, since: "", until: "" })}
          />
          <button
            type="button"
            aria-expanded={isOpen}
            aria-controls={others}
            onClick={() => setIsOpen(!isOpen)}
            className={`${BUTTON} lg:hidden`}
          >
            More filters
          </button>
          {!isSearch && (
            <>
              <button
                type="button"
                aria-pressed={value.issues !== ""}
                onClick={() => apply({ ...draft, issues: value.issues === "" ? "tool" : "" })}
                className={`${BUTTON} aria-pressed:border-accent aria-pressed:bg-tint aria-pressed:font-medium aria-pressed:text-accent`}
              >
                With failed tools
              </button>
              <button type="button" onClick={() => apply(lastNight(new Date()))} className={BUTTON}>
                Failed last night
              </button>
            </>
          )}
          {searchOf(value) !== "" && (
            <button
              type="button"
              onClick={() => apply(NO_FILTER)}
              className="px-1 py-1.5 text-sm text-accent hover:underline pointer-coarse:py-2.5"
            >
              Clear filters
            </button>
          )}
        </div>
        <div
          id={others}
          className={`grid grid-cols-2 gap-2 lg:grid-cols-6 ${isOpen ? "" : isSearch ? "max-lg:*:not-first:hidden" : "max-lg:hidden"}`}
        >
          {text("text", "Text", "Words of messages")}
          <Field label="Agent">
            {(control) => (
              <select
                {...control}
                value={draft.agent}
                onChange={({ target }) => apply({ ...draft, agent: target.value })}
                className={FILTER}
              >
                <option value="">All</option>
                {agentOptions(agents, draft.agent).map(([id, name]) => (
                  <option key={id} value={id}>
                    {name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          {!isSearch && text("tool", "Tool", "library/tool")}
          {text("user", "User", "All")}
          {text("since", "From", "2026-05", { last: "" })}
          {text("until", "Until", "2026-05-03", { last: "" })}
        </div>
        <button type="submit" className="sr-only focus:not-sr-only focus:text-sm focus:text-accent">
          Apply filters
        </button>
      </form>
    </search>
  );
}

interface ChoicesProps {
  label: string;
  choices: readonly (readonly [name: string, label: ReactNode])[];
  /** `undefined`: none of the choices. */
  value: string | undefined;
  onChoose: (name: string) => void;
}

/** Buttons in a row. One is pressed. */
function Choices({ label, choices, value, onChoose }: ChoicesProps) {
  return (
    <fieldset className="flex overflow-hidden rounded-lg border border-line bg-surface text-sm">
      <legend className="sr-only">{label}</legend>
      {choices.map(([name, text]) => (
        <button
          key={name}
          type="button"
          aria-pressed={value === name}
          onClick={() => onChoose(name)}
          className="border-r border-line px-2.5 py-1.5 last:border-r-0 hover:bg-sunken aria-pressed:bg-tint aria-pressed:font-medium aria-pressed:text-accent pointer-coarse:py-2.5"
        >
          {text}
        </button>
      ))}
    </fieldset>
  );
}

/** Returns the ids and names of agents. The chosen agent is there even if it is not in the list. */
function agentOptions(agents: readonly AgentSummary[], chosen: string): [id: string, name: string][] {
  const listed = (agents ?? []).map((agent): [string, string] => [agent.id, agentName(agent)]);
  const isListed = chosen === "" || listed.some(([id]) => id === chosen);
  return isListed ? listed : [...listed, [chosen, chosen]];
}
