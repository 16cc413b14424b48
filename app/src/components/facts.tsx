/** Facts of a thing, each with its label. */
import type { ReactNode } from "react";

/** A label with its value. Facts of one label have distinct texts as values. */
export type Fact = readonly [label: string, value: ReactNode];

/** Leaves out facts with the value `undefined`. */
export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-3 gap-y-0.5 text-xs">
      {facts.map(([label, value]) =>
        value === undefined ? null : (
          <div key={`${label} ${typeof value === "string" ? value : ""}`} className="contents">
            <dt className="text-muted">{label}</dt>
            <dd className="wrap-anywhere">{value}</dd>
          </div>
        ),
      )}
    </dl>
  );
}
