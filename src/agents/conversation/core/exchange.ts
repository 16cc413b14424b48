/** Exchanges: the message of a user, its turn, and the turns that agents start after it. Pure. */
import type { BaseState, ConversationState } from "./state.ts";
import type { Transition } from "./transition.ts";
import type { Exchange, Turn } from "./turn.ts";

export function exchangeOf({ n, caller, exchange }: Pick<Turn, "n" | "caller" | "exchange">): Exchange {
  return exchange ?? { of: n, by: caller };
}

/** Returns how many turns an exchange has had. */
export function turnsOfExchange({ exchanges }: Pick<BaseState, "exchanges">, of: number): number {
  return exchanges?.[of] ?? 1;
}

/** Counts a turn of an exchange that an agent has started. */
export function withExchange(
  { exchanges }: Pick<BaseState, "exchanges">,
  { exchange }: Pick<Turn, "exchange">,
): Pick<BaseState, "exchanges"> {
  if (exchange === undefined) return {};
  const { of } = exchange;
  return {
    exchanges: { ...exchanges, [of]: turnsOfExchange(exchanges === undefined ? {} : { exchanges }, of) + 1 },
  };
}

/** Forgets the exchanges that are over: no active turn belongs to them. */
export function endExchanges(transition: Transition): Transition {
  const { exchanges, ...others } = transition.state;
  if (exchanges === undefined) return transition;
  const open = openExchanges(transition.state);
  const left = Object.entries(exchanges).filter(([of]) => open.has(Number(of)));
  if (left.length === Object.keys(exchanges).length) return transition;
  const state = left.length === 0 ? others : { ...others, exchanges: Object.fromEntries(left) };
  return { ...transition, state };
}

function openExchanges({ active }: Pick<ConversationState, "active">): ReadonlySet<number> {
  return new Set([...active.values()].map((turn) => exchangeOf(turn).of));
}
