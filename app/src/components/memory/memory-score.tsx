/** Why a result has its place: the parts of its score as a table with bars, and the words that were found. */
import type { MemoryScore } from "../../../../src/client/index.ts";
import { partsOf, relevanceNote, scoreText } from "../../memory/score-parts.ts";

export function MemoryScoreView({ score }: { score: MemoryScore }) {
  const { total, relevance, terms } = score;
  return (
    <details data-testid="memory-score" className="border-t border-line text-xs">
      <summary className="rounded-b-xl px-4 py-2 text-muted hover:text-ink pointer-coarse:py-3">
        {relevanceNote(relevance)}. Why it is here
      </summary>
      <div className="space-y-2 px-4 pb-3">
        <table className="w-full border-separate border-spacing-y-1">
          <caption className="sr-only">Parts of the score</caption>
          <tbody>
            {partsOf(score).map(({ name, label, value, width }) => (
              <tr key={name} data-part={name}>
                <th scope="row" className="w-32 pr-3 text-left font-normal text-muted">
                  {label}
                </th>
                <td aria-hidden="true">
                  <span className="block h-2 rounded-full bg-line/60">
                    <span
                      className={`block h-2 rounded-full ${value < 0 ? "bg-danger" : "bg-accent"}`}
                      style={{ width: `${width * 100}%` }}
                    />
                  </span>
                </td>
                <td className="w-14 pl-3 text-right tabular-nums">{scoreText(value)}</td>
              </tr>
            ))}
            <tr className="font-medium">
              <th scope="row" className="pr-3 text-left font-medium">
                Score
              </th>
              <td aria-hidden="true" />
              <td className="pl-3 text-right tabular-nums">{scoreText(total)}</td>
            </tr>
          </tbody>
        </table>
        {terms.length > 0 && <p className="text-muted wrap-anywhere">Words found: {terms.join(", ")}</p>}
      </div>
    </details>
  );
}
