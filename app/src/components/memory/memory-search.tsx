/** The form that chooses memories: a search by text, and filters. Enter applies texts, and a state applies at once. */
import { type FormEvent, useId, useState } from "react";
import { MEMORY_STATES } from "../../../../src/protocol/memory.ts";
import { isLimited, type MemoryChoice, NO_CHOICE, trimmedChoice } from "../../memory/memory-choice.ts";
import { STATE_TEXT } from "../../memory/memory-texts.ts";
import { FIELD, Field } from "../field.tsx";

/** Browsers make selections lower than inputs. */
const FILTER = `${FIELD} h-11 sm:h-10`;

interface MemorySearchProps {
  /** The choice that applies. */
  value: MemoryChoice;
  onChange: (choice: MemoryChoice) => void;
  /** Types to suggest. */
  types: readonly string[];
}

export function MemorySearch({ value, onChange, types }: MemorySearchProps) {
  const [draft, setDraft] = useState(value);
  const [applied, setApplied] = useState(value);
  // The address may change by a link, and by the buttons of the browser.
  if (applied !== value) {
    setApplied(value);
    setDraft(value);
  }
  const suggestions = useId();
  const isSearch = draft.query.trim() !== "";

  function apply(choice: MemoryChoice) {
    setDraft(choice);
    onChange(trimmedChoice(choice));
  }

  function submit(event: FormEvent) {
    event.preventDefault();
    apply(draft);
  }

  return (
    <search>
      <form aria-label="Memories" onSubmit={submit} data-testid="memory-search" className="space-y-2">
        <div className="flex gap-2">
          <input
            type="search"
            aria-label="Search memories"
            placeholder="Ask a question"
            value={draft.query}
            onChange={({ target }) => setDraft({ ...draft, query: target.value })}
            enterKeyHint="search"
            className={FIELD}
          />
          <button
            type="submit"
            className="shrink-0 rounded-lg bg-accent px-4 py-2 text-sm font-medium text-on-accent"
          >
            Search
          </button>
        </div>
        <div className="grid grid-cols-2 gap-2 sm:grid-cols-3">
          <Field label="Type">
            {(control) => (
              <input
                {...control}
                value={draft.type}
                list={suggestions}
                onChange={({ target }) => setDraft({ ...draft, type: target.value })}
                placeholder="All"
                autoComplete="off"
                autoCapitalize="off"
                className={FILTER}
              />
            )}
          </Field>
          <Field label="User">
            {(control) => (
              <input
                {...control}
                value={draft.userId}
                onChange={({ target }) => setDraft({ ...draft, userId: target.value })}
                placeholder="All"
                autoComplete="off"
                autoCapitalize="off"
                spellCheck={false}
                className={FILTER}
              />
            )}
          </Field>
          <div className="max-sm:col-span-2">
            <Field label="State">
              {(control) => (
                <select
                  {...control}
                  value={isSearch ? "current" : draft.state}
                  disabled={isSearch}
                  onChange={({ target }) => {
                    // SAFETY: the options are the states and `all`.
                    apply({ ...draft, state: target.value as MemoryChoice["state"] });
                  }}
                  className={FILTER}
                >
                  {isSearch && <option value="current">Current, as in every search</option>}
                  {!isSearch &&
                    MEMORY_STATES.map((state) => (
                      <option key={state} value={state}>
                        {STATE_TEXT[state]}
                      </option>
                    ))}
                  {!isSearch && <option value="all">All</option>}
                </select>
              )}
            </Field>
          </div>
        </div>
        <datalist id={suggestions}>
          {types.map((type) => (
            <option key={type} value={type} />
          ))}
        </datalist>
        {isLimited(value) && (
          <button
            type="button"
            onClick={() => apply(NO_CHOICE)}
            className="py-1 text-sm text-accent hover:underline pointer-coarse:py-2.5"
          >
            Show all current memories
          </button>
        )}
      </form>
    </search>
  );
}
