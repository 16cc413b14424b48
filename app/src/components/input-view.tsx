/** The input that a person decides on: its amounts and dates in readable form, and the exact JSON below. */
import { readableMembers } from "../readable.ts";
import { Facts } from "./facts.tsx";
import { JsonView } from "./json-view.tsx";

export function InputView({ value }: { value: unknown }) {
  const members = readableMembers(value);
  return (
    <div className="space-y-2">
      {members.length > 0 && (
        <div data-testid="readable">
          <Facts facts={members.map(({ label, text }) => [label, text])} />
        </div>
      )}
      <JsonView label="Input" value={value} exact />
    </div>
  );
}
