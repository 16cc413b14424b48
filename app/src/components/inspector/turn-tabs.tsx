/** The links of the views of a turn. */
import { TURN_VIEWS, type TurnView, turnPath } from "../../route.ts";
import { Link } from "../link.tsx";

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
    <nav aria-label="Views of the turn" className="flex flex-wrap gap-x-1 border-b border-line">
      {TURN_VIEWS.map((name) => (
        <Link
          key={name}
          to={turnPath(conversationId, turnId, name, OF_CALL.includes(name) ? call : undefined)}
          aria-current={name === view ? "page" : undefined}
          data-testid={`view-${name}`}
          className="-mb-px rounded-t-lg border-b-2 border-transparent px-2.5 py-2 text-sm text-muted hover:text-ink aria-[current=page]:border-accent aria-[current=page]:font-medium aria-[current=page]:text-ink"
        >
          {TEXT[name]}
        </Link>
      ))}
    </nav>
  );
}
