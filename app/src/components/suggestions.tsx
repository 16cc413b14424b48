/** First things to say, each of which shows something an agent can do. */
const suggestions = [
  { text: "What is 12*(3+4)?", shows: "Calculates with a tool" },
  { text: "What day is it in 30 days?", shows: "Works with dates" },
  { text: "Search the docs for crash recovery", shows: "Looks things up" },
  { text: "Remember that my cat is called Miso", shows: "Keeps what you tell it" },
];

export function Suggestions({ onPick }: { onPick: (text: string) => void }) {
  return (
    <section aria-label="Suggestions">
      <h3 className="mb-2 text-sm font-medium text-muted">Try one of these</h3>
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
