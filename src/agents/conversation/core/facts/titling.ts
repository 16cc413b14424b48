/** Titles by a model: started, completed. Pure. */
import { turnId } from "../../../../protocol/ids.ts";
import type { Titling } from "../state.ts";
import type { Transition } from "../transition.ts";
import { noted, silent } from "./fact.ts";
import { lifecycle } from "./lifecycle.ts";
import { closed, type MadeAttempt, withoutTitling } from "./side-call.ts";

export const titling = {
  START_TITLING(transition: Transition, data: Omit<Titling, "startedAt" | "call">, now: number): Transition {
    const started: Titling = { ...data, startedAt: now, call: { attempt: 1, notBefore: now } };
    return noted(
      { ...transition, state: { ...transition.state, titling: started } },
      {
        type: "conversation.title.started",
        data: { agentId: data.agentId, turnId: turnId({ n: data.turn, stem: data.stem }) },
      },
    );
  },

  /** Gives the title of a model to the conversation. */
  TITLE(
    transition: Transition,
    data: { session: string; title: true; text: string; made: MadeAttempt },
    now: number,
  ): Transition {
    const { titling: running } = transition.state;
    if (running === undefined) return transition;
    const { turn, stem, agentId } = running;
    const by = { type: "agent", agentId, turnId: turnId({ n: turn, stem }) } as const;
    const ended = withoutTitling(closed(transition, data, now));
    return lifecycle.SET_TITLE(ended, { title: data.text, by, automatic: true });
  },
};

export const titlingFrames = silent("conversation.title.started", "conversation.title.failed");
