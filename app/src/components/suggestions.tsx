/** Example messages, each of which shows an ability of the agent. */
const suggestions = [
  { text: "What is 12*(3+4)?", shows: "Uses the calculator" },
  { text: "What day is it in 30 days?", shows: "Calculates dates" },
  { text: "Search the docs for crash recovery", shows: "Searches the documentation" },
  { text: "Remember that my cat is called Miso", shows: "Saves a note" },
];

export function Suggestions({ onPick }: { onPick: (text: string) => void }) {
  return (
    <section aria-label="Examples">
      <h3 className="mb-2 text-sm font-medium text-muted">Try an example</h3>
      <ul className="grid gap-3 sm:grid-cols-2">
        {suggestions.map(({ text, shows }) => (
          <li key={text}>
            <button
              type="button"
              onClick={() => onPick(text)}
              className="h-full w-full rounded-xl border border-line px-4 py-3 text-left hover:border-accent hover:bg-surface"
            >
              <span className="block text-sm">{text}</span>
              <span className="block text-xs text-muted">{shows}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
