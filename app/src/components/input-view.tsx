/** The input that a person decides on: its amounts and dates in readable form, and the exact JSON below. */
import { count } from "../format.ts";
import { readableMembers } from "../readable.ts";
import { Facts } from "./facts.tsx";
import { JsonView } from "./json-view.tsx";

export function InputView({ value }: { value: unknown }) {
  const { members, more } = readableMembers(value);
  return (
    <div className="space-y-2">
      {members.length + more > 0 && (
        <div data-testid="readable">
          <Facts facts={members.map(({ label, text }) => [label, text])} />
          {more > 0 && (
            <p className="text-xs text-muted">
              {members.length > 0 ? `and ${more} more` : count(more, "amount or date", "amounts or dates")} in
              the exact input
            </p>
          )}
        </div>
      )}
      <JsonView label="Input" value={value} exact />
    </div>
  );
}
