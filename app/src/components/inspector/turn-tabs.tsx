/** The links of the views of a turn. */
import { TURN_VIEWS, type TurnView, turnPath } from "../../route.ts";
import { TABS, TabLink } from "../tab-link.tsx";

const TEXT: Record<TurnView, string> = {
  waterfall: "Waterfall",
  request: "Request",
  prompt: "Prompt",
  journal: "Journal",
  incidents: "Incidents",
  projections: "Projections",
  replay: "Replay",
};

interface TurnTabsProps {
  conversationId: string;
  turnId: string;
  view: TurnView;
  /** The chosen model call, which the views of calls keep. */
  call: number | undefined;
}

/** The views of one model call. */
const OF_CALL: readonly TurnView[] = ["request", "prompt"];

export function TurnTabs({ conversationId, turnId, view, call }: TurnTabsProps) {
  return (
    <nav aria-label="Views of the turn" className={TABS}>
      {TURN_VIEWS.map((name) => (
        <TabLink
          key={name}
          to={turnPath(conversationId, turnId, name, OF_CALL.includes(name) ? call : undefined)}
          isCurrent={name === view}
          data-testid={`view-${name}`}
        >
          {TEXT[name]}
        </TabLink>
      ))}
    </nav>
  );
}
