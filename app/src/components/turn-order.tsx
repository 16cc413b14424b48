/** The setting of a conversation for messages that arrive during an answer. */
import { useId, useState } from "react";
import type { TurnOrder } from "../../../src/client/index.ts";
import { messageOf } from "../format.ts";
import { ErrorNote } from "./error-note.tsx";

const orders: { value: TurnOrder; name: string; meaning: string }[] = [
  { value: "parallel", name: "At the same time", meaning: "The agent answers it at once." },
  { value: "queued", name: "One after another", meaning: "It waits until the answers before it are done." },
  { value: "interrupt", name: "Newest only", meaning: "It stops the answer in progress." },
];

interface TurnOrderProps {
  value: TurnOrder;
  /** Rejects if the setting cannot be changed. */
  onChange: (order: TurnOrder) => Promise<unknown>;
}

export function TurnOrderField({ value, onChange }: TurnOrderProps) {
  const id = useId();
  /** The choice that was made while the conversation had the order `over`, and is not confirmed yet. */
  const [choice, setChoice] = useState<{ order: TurnOrder; over: TurnOrder } | null>(null);
  const [error, setError] = useState<unknown>(undefined);

  // The conversation confirmed the choice, or another client has chosen.
  if (choice !== null && choice.over !== value) setChoice(null);

  async function choose(order: TurnOrder) {
    setChoice({ order, over: value });
    setError(undefined);
    try {
      await onChange(order);
    } catch (reason) {
      setError(reason);
      setChoice(null);
    }
  }

  return (
    <div className="pb-2">
      <fieldset>
        <legend className="px-3 pt-2 pb-1 text-sm font-semibold">A new message during an answer</legend>
        {orders.map(({ value: order, name, meaning }) => (
          <label
            key={order}
            className="flex items-start gap-3 rounded-xl px-3 py-2 hover:bg-sunken has-checked:bg-tint"
          >
            <input
              type="radio"
              name={id}
              value={order}
              checked={order === (choice?.order ?? value)}
              onChange={() => void choose(order)}
              className="mt-0.5 size-4 shrink-0 accent-accent"
            />
            <span className="min-w-0 flex-1">
              <span className="block text-sm font-medium">{name}</span>
              <span className="block text-xs text-muted">{meaning}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {error !== undefined && <ErrorNote text={messageOf(error)} />}
    </div>
  );
}
